package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	syntax "go.yaml.in/yaml/v3"
)

// edit returns the content of a settings file with features.agentSurvival set. It
// keeps comments, which is why it works on the syntax and not on values.
func edit(content []byte, on bool) ([]byte, error) {
	document, found, err := parse(content)
	if err != nil {
		return nil, err
	}
	var edited bytes.Buffer
	if !found { // the comments, if there are any, belong to no value
		edited.Write(content)
		if len(content) > 0 && !bytes.HasSuffix(content, []byte("\n")) {
			edited.WriteByte('\n')
		}
		document = &syntax.Node{Kind: syntax.MappingNode}
	}
	value, err := survivalNode(document)
	if err != nil {
		return nil, err
	}
	value.Kind, value.Tag, value.Style, value.Value = syntax.ScalarNode, "!!bool", 0, strconv.FormatBool(on)
	encoder := syntax.NewEncoder(&edited)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(document), encoder.Close()); err != nil {
		return nil, fmt.Errorf("encode the settings file: %w", err)
	}
	return edited.Bytes(), nil
}

// parse reads the one document of a settings file, if there is one.
func parse(content []byte) (document *syntax.Node, found bool, err error) {
	decoder := syntax.NewDecoder(bytes.NewReader(content))
	document = &syntax.Node{}
	err = decoder.Decode(document)
	if errors.Is(err, io.EOF) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrNotEditable, err)
	}
	if err := decoder.Decode(&syntax.Node{}); !errors.Is(err, io.EOF) {
		return nil, false, fmt.Errorf("%w: it holds more than one document", ErrNotEditable)
	}
	return document, true, nil
}

// survivalNode finds the setting in the document, or makes it.
func survivalNode(document *syntax.Node) (*syntax.Node, error) {
	root := document
	if document.Kind == syntax.DocumentNode {
		root = document.Content[0]
	}
	if root.Kind != syntax.MappingNode {
		return nil, fmt.Errorf("%w: it is not a mapping", ErrNotEditable)
	}
	features, flat := find(root, "features"), find(root, survivalKey)
	switch {
	case flat != nil && features != nil && find(features, "agentSurvival") != nil:
		return nil, fmt.Errorf("%w: the setting is there twice", ErrNotEditable)
	case flat != nil:
		return flat, nil
	}
	features = findOrAdd(root, "features")
	switch {
	case features.Kind == syntax.ScalarNode && features.Tag == "!!null": // all of it is commented out
		features.Kind, features.Tag, features.Value = syntax.MappingNode, "", ""
	case features.Kind != syntax.MappingNode:
		return nil, fmt.Errorf("%w: features is not a mapping", ErrNotEditable)
	}
	return findOrAdd(features, "agentSurvival"), nil
}

func findOrAdd(mapping *syntax.Node, key string) *syntax.Node {
	if value := find(mapping, key); value != nil {
		return value
	}
	value := &syntax.Node{Kind: syntax.ScalarNode, Tag: "!!null"}
	mapping.Content = append(mapping.Content, &syntax.Node{Kind: syntax.ScalarNode, Value: key}, value)
	return value
}

// find returns the value of the key, nil if there is none. Keys and values of a
// mapping take turns.
func find(mapping *syntax.Node, key string) *syntax.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}
