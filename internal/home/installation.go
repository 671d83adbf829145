package home

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kandev/recovery/internal/atomicfile"
	"github.com/kandev/recovery/internal/credential"
)

// installation is the content of installationFile. Machine and Home tell a copy
// of the directory from the original: two backends that both believe to be one
// installation would take each other's agents for their own.
type installation struct {
	ID      string `json:"installation_id"`
	Machine string `json:"machine"` // derived from the machine's id; empty: bind to the present one
	Home    string `json:"home"`
}

// identify returns the installation's id, which it creates with the directory.
func identify(dir string, machine machine) (string, error) {
	file := filepath.Join(dir, installationFile)
	machineID, err := machine.id()
	if err != nil {
		return "", err
	}
	known, found, err := readInstallation(file)
	if err != nil {
		return "", err
	}
	if !found {
		known = installation{ID: credential.NewID()}
	}
	bound := installation{ID: known.ID, Machine: bind(machineID, known.ID), Home: dir}
	if known == bound {
		return known.ID, nil
	}
	if known.Machine != "" && known.Machine != bound.Machine {
		return "", fmt.Errorf("%w: %s was made on another machine; if it is a copy, delete %s to make it an installation of its own; if it was moved here and nothing runs from the old one, set \"machine\" in that file to \"\"",
			ErrCopied, dir, file)
	}
	if err := checkMoved(known, dir); err != nil {
		return "", err
	}
	return known.ID, writeInstallation(file, bound)
}

// checkMoved tells a directory that was moved from one that was copied: of a
// copy, the original is still there.
func checkMoved(known installation, dir string) error {
	if known.Home == "" || known.Home == dir {
		return nil
	}
	original, found, err := readInstallation(filepath.Join(known.Home, installationFile))
	if err != nil {
		return fmt.Errorf("cannot tell whether %s is a copy of %s: %w", dir, known.Home, err)
	}
	if found && original.ID == known.ID && !sameDirectory(known.Home, dir) {
		return fmt.Errorf("%w: it is a copy of %s; delete %s to make it an installation of its own",
			ErrCopied, known.Home, filepath.Join(dir, installationFile))
	}
	return nil
}

func sameDirectory(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// bind derives a value that shows neither the machine's id nor, without it, the
// same value again.
func bind(machineID, installationID string) string {
	mac := hmac.New(sha256.New, []byte(machineID))
	mac.Write([]byte("kandev installation " + installationID))
	return hex.EncodeToString(mac.Sum(nil))
}

func readInstallation(file string) (installation, bool, error) {
	content, found, err := readFile(file)
	if err != nil || !found {
		return installation{}, false, err
	}
	var known installation
	if err := json.Unmarshal(content, &known); err != nil || known.ID == "" {
		return installation{}, false, fmt.Errorf("%w: %s is damaged; restore it from a backup, or delete it to begin a new installation without the old one's sessions", ErrNotUsable, file)
	}
	return known, true, nil
}

func writeInstallation(file string, i installation) error {
	content, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", installationFile, err)
	}
	return atomicfile.Write(file, append(content, '\n'))
}
