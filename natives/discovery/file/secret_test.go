package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestErrorsShowNoContent reads files that match the pattern but contain no
// targets.
func TestErrorsShowNoContent(t *testing.T) {
	for ext, text := range map[string]string{
		".yml":  "root:s3cret:19000:0:99999:7:::\nbin:s3cret:1\n",
		".yaml": "- s3cret\n- targets: s3cret\n",
		".json": `"s3cret"`,
	} {
		path := filepath.Join(t.TempDir(), "f"+ext)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := read(path); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %v", ext, err)
		}
	}
}
