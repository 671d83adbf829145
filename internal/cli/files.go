package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/kandev/recovery/userapi"
)

func newFiles(f *flags) *cobra.Command {
	files := &cobra.Command{Use: "files", Short: "Look at and change the files of a session's workspace"}
	files.AddCommand(newFilesList(f), newFilesRead(f), newFilesWrite(f))
	return files
}

// rootFlag adds the choice of a root to a command.
func rootFlag(cmd *cobra.Command, place *userapi.Place) {
	cmd.Flags().IntVar(&place.Root, "root", 0, "which of the session's roots; 0 is the workspace")
}

// pathOf is the path among a command's arguments, or the root itself.
func pathOf(args []string) string {
	if len(args) < 2 {
		return ""
	}
	return args[1]
}

func newFilesList(f *flags) *cobra.Command {
	var place userapi.Place
	cmd := &cobra.Command{
		Use:   "list SESSION [DIRECTORY]",
		Short: "List a directory",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := f.connect()
			if err != nil {
				return err
			}
			place.Path = pathOf(args)
			listed, err := client.Files(cmd.Context(), args[0], place)
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), listed, func(out io.Writer) error { return printDirectory(out, listed) })
		},
	}
	rootFlag(cmd, &place)
	return cmd
}

func printDirectory(out io.Writer, listed userapi.Directory) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KIND\tSIZE\tMODIFIED\tNAME")
	for _, e := range listed.Entries {
		fmt.Fprintf(w, "%s\t%d\t%s\t%q\n", e.Kind, e.Size, e.ModifiedAt.Local().Format(time.DateTime), e.Name)
	}
	if listed.Truncated {
		fmt.Fprintln(w, "…\t\t\tthere are more entries than can be listed")
	}
	return w.Flush()
}

func newFilesRead(f *flags) *cobra.Command {
	var place userapi.Place
	cmd := &cobra.Command{
		Use:   "read SESSION FILE",
		Short: "Print a file as it is",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := f.connect()
			if err != nil {
				return err
			}
			place.Path = args[1]
			return copyFile(cmd.Context(), client, args[0], place, cmd.OutOrStdout())
		},
	}
	rootFlag(cmd, &place)
	return cmd
}

// copyFile writes a file piece by piece, however large it is.
func copyFile(ctx context.Context, client *userapi.Client, session string, place userapi.Place, out io.Writer) error {
	var offset int64
	for {
		piece, err := client.ReadFile(ctx, session, place, offset, 0)
		if err != nil {
			return err
		}
		if _, err := out.Write(piece.Content); err != nil {
			return err
		}
		offset += int64(len(piece.Content))
		if len(piece.Content) == 0 || offset >= piece.Size {
			return nil
		}
	}
}

func newFilesWrite(f *flags) *cobra.Command {
	var request userapi.WriteFile
	var from string
	cmd := &cobra.Command{
		Use:   "write SESSION FILE",
		Short: "Replace or create a file with what standard input holds",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if request.Content, err = input(from, cmd.InOrStdin()); err != nil {
				return err
			}
			client, err := f.connect()
			if err != nil {
				return err
			}
			request.Path = args[1]
			written, err := client.WriteFile(cmd.Context(), args[0], request)
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), written, func(out io.Writer) error {
				_, err := fmt.Fprintln(out, written.SHA256)
				return err
			})
		},
	}
	rootFlag(cmd, &request.Place)
	cmd.Flags().StringVar(&from, "from", "", "file to take the content from, instead of standard input")
	cmd.Flags().StringVar(&request.Expect, "expect", "",
		"SHA-256 of the content that is to be replaced, or \"absent\"; otherwise nothing is written")
	return cmd
}

// input reads what is to be written, of at most userapi.MaxFileContent bytes.
func input(from string, standard io.Reader) ([]byte, error) {
	source := standard
	if from != "" {
		file, err := os.Open(from)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		source = file
	}
	content, err := io.ReadAll(io.LimitReader(source, userapi.MaxFileContent+1))
	if err == nil && len(content) > userapi.MaxFileContent {
		err = fmt.Errorf("the content is over %d bytes; write a smaller file", userapi.MaxFileContent)
	}
	return content, err
}
