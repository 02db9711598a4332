package file

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/weir-run/weir/engine/files"
)

// imports are the offsets in a positions file of Promtail or Alloy.
type imports map[importKey]string

type importKey struct{ path, labels string }

// offsetOf returns the offset of a target, as text. Offsets of Promtail have no
// labels.
func (m imports) offsetOf(t *target) (string, bool) {
	if v, ok := m[importKey{t.path, t.key}]; ok {
		return v, true
	}
	v, ok := m[importKey{t.path, "{}"}]
	return v, ok
}

// readImports reads a positions file. It need not exist.
func readImports(path string) (imports, error) {
	b, err := files.Read(path, files.MaxOwn)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the positions file: %w", err)
	}
	m, err := parseImports(b)
	if err != nil {
		return nil, fmt.Errorf("cannot read the positions file %s: %w", path, err)
	}
	return m, nil
}

// parseImports parses both formats. The key is a path in Promtail, and a path
// with labels in Alloy. It skips entries that are not for files.
func parseImports(b []byte) (imports, error) {
	var doc struct {
		Positions yaml.Node `yaml:"positions"`
	}
	if err := yaml.Unmarshal(b, &doc); err != nil {
		return nil, err
	}
	n := doc.Positions
	if n.Kind == 0 || n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil, nil
	}
	if n.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: positions is not a map", n.Line)
	}
	m := imports{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		key := importKey{labels: "{}"}
		if k.Kind == yaml.MappingNode {
			var entry struct{ Path, Labels string }
			if err := k.Decode(&entry); err != nil {
				return nil, err
			}
			key = importKey{entry.Path, entry.Labels}
		} else {
			key.path = k.Value
		}
		if v.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: the position of %s is not an offset", v.Line, key.path)
		}
		if filepath.IsAbs(key.path) {
			m[key] = v.Value
		}
	}
	return m, nil
}
