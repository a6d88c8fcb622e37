package service

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v4"
)

// MergeOpenAPI adds fragments to a service's OpenAPI document, so that what a package serves in every service (its admin
// routes) is described once, beside the package. A fragment is a document that has nothing but paths, components and tags;
// it may refer to components of the base. The order of everything is kept, and so are comments.
//
// A path or an operationId that is there already is an error, and so is a component with another content under the same
// name; the same content twice is taken once, as is a tag.
func MergeOpenAPI(base []byte, fragments ...[]byte) ([]byte, error) {
	document, err := readOpenAPI(base)
	if err != nil {
		return nil, fmt.Errorf("merge OpenAPI: %w", err)
	}
	for i, text := range fragments {
		fragment, err := readOpenAPI(text)
		if err == nil {
			err = addFragment(document, fragment)
		}
		if err != nil {
			return nil, fmt.Errorf("merge OpenAPI: fragment %d: %w", i+1, err)
		}
	}
	merged, err := yaml.Dump(document, yaml.WithIndent(2), yaml.WithLineWidth(-1))
	if err != nil {
		return nil, fmt.Errorf("merge OpenAPI: %w", err)
	}
	return merged, nil
}

// readOpenAPI answers the outermost mapping.
func readOpenAPI(text []byte) (*yaml.Node, error) {
	var document yaml.Node
	if err := yaml.Load(text, &document); err != nil {
		return nil, err
	}
	if document.Kind == yaml.DocumentNode && len(document.Content) == 1 {
		document = *document.Content[0]
	}
	if document.Kind != yaml.MappingNode {
		return nil, errors.New("not a mapping")
	}
	return &document, nil
}

func addFragment(document, fragment *yaml.Node) error {
	for key, value := range members(fragment) {
		var err error
		switch key.Value {
		case "paths":
			err = addPaths(member(document, key, value.Kind), value)
		case "components":
			components := member(document, key, value.Kind)
			for kind, named := range members(value) {
				if err = addComponents(member(components, kind, named.Kind), named); err != nil {
					err = fmt.Errorf("%s: %w", kind.Value, err)
					break
				}
			}
		case "tags":
			addTags(member(document, key, value.Kind), value)
		default:
			err = errors.New("has no place in a fragment")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key.Value, err)
		}
	}
	return nil
}

func addPaths(to, from *yaml.Node) error {
	known := map[string]bool{}
	for _, path := range members(to) {
		for _, operation := range members(path) {
			known[operationID(operation)] = true
		}
	}
	for name, path := range members(from) {
		if find(to, name.Value) != nil {
			return fmt.Errorf("%s is there already", name.Value)
		}
		for _, operation := range members(path) {
			if id := operationID(operation); id != "" && known[id] {
				return fmt.Errorf("the operationId %s is there already", id)
			}
		}
		to.Content = append(to.Content, name, path)
	}
	return nil
}

func addComponents(to, from *yaml.Node) error {
	for name, component := range members(from) {
		switch there := find(to, name.Value); {
		case there == nil:
			to.Content = append(to.Content, name, component)
		case !same(there, component):
			return fmt.Errorf("%s is there already, with another content", name.Value)
		}
	}
	return nil
}

func addTags(to, from *yaml.Node) {
	for _, tag := range from.Content {
		known := false
		for _, there := range to.Content {
			known = known || value(there, "name") == value(tag, "name")
		}
		if !known {
			to.Content = append(to.Content, tag)
		}
	}
}

// members goes through the keys and values of a mapping.
func members(mapping *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		if mapping == nil || mapping.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(mapping.Content); i += 2 {
			if !yield(mapping.Content[i], mapping.Content[i+1]) {
				return
			}
		}
	}
}

// find answers the value of a key, nil when it is not there.
func find(mapping *yaml.Node, name string) *yaml.Node {
	for key, value := range members(mapping) {
		if key.Value == name {
			return value
		}
	}
	return nil
}

// value answers the text of a key, "" when it is not there.
func value(mapping *yaml.Node, name string) string {
	if found := find(mapping, name); found != nil {
		return found.Value
	}
	return ""
}

func operationID(operation *yaml.Node) string { return value(operation, "operationId") }

// member answers the value of a key, a new empty one of the kind when it is not there.
func member(mapping, key *yaml.Node, kind yaml.Kind) *yaml.Node {
	there := find(mapping, key.Value)
	if there == nil {
		there = &yaml.Node{Kind: kind}
		mapping.Content = append(mapping.Content, key, there)
	}
	return there
}

// same compares what is said, not how it is written.
func same(a, b *yaml.Node) bool {
	if a.Kind != b.Kind || a.Value != b.Value || len(a.Content) != len(b.Content) {
		return false
	}
	for i := range a.Content {
		if !same(a.Content[i], b.Content[i]) {
			return false
		}
	}
	return true
}
