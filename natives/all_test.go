package natives_test

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/natives"
)

// TestAll: All has every package with a Registration, sorted, under the name of
// its path.
func TestAll(t *testing.T) {
	var want, got []string
	root := os.DirFS(".")
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(root, name)
		if bytes.Contains(text, []byte("\nfunc Registration() ")) {
			want = append(want, strings.ReplaceAll(path.Dir(name), "/", "."))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	for _, r := range natives.All() {
		got = append(got, r.Name)
		if r.Doc.Summary == "" || r.Doc.Example == "" {
			t.Errorf("%s has no manual: run go generate ./natives/docs", r.Name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the list in natives.go is not that of the packages with a function Registration, sorted by name (-packages +list):\n%s", diff)
	}
}
