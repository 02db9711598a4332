//go:build unix

package file

import (
	"testing"

	"github.com/weir-run/weir/engine/files/filestest"
)

func TestUnreadable(t *testing.T) {
	for kind, path := range filestest.Special(t, "f.yml") {
		filestest.Within(t, "reading a "+kind, func() {
			if _, err := read(path); err == nil {
				t.Errorf("a %s was read", kind)
			}
		})
	}
}
