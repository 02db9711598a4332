package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestShippedScriptsConfigs holds that the config in the header of each script
// that ships is one, and that there is one.
func TestShippedScriptsConfigs(t *testing.T) {
	cs, err := scriptsUse{}.catalogs(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	scripted := cs[len(cs)-1]
	for _, name := range scripted.Names() {
		r, _ := scripted.Lookup(name)
		// It ends with the first bracket that is indented as it begins.
		begin := regexp.MustCompile(`(?m)^( *)` + regexp.QuoteMeta(name) + ` "default" \{$`).FindStringSubmatchIndex(r.Doc.Summary)
		config := ""
		if begin != nil {
			rest := r.Doc.Summary[begin[0]:]
			end := "\n" + r.Doc.Summary[begin[2]:begin[3]] + "}"
			config = rest[:strings.Index(rest+end, end)] + end
		}
		if config == "" {
			if !strings.HasPrefix(name, "demo.") { // which the quickstart has
				t.Errorf("%s has no config in its header", name)
			}
			continue
		}
		path := filepath.Join(t.TempDir(), "config.alloy")
		config += "\n\nprometheus.remote_write \"default\" {\n  endpoint {\n    url = \"http://127.0.0.1:1/api/v1/write\"\n  }\n}\n\n" +
			"loki.write \"default\" {\n  endpoint {\n    url = \"http://127.0.0.1:1/loki/api/v1/push\"\n  }\n}\n"
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		if code := execute(t.Context(), &terminal{out: io.Discard, err: &said}, []string{"check", path}); code != exitOK {
			t.Errorf("%s: the config in its header is none:\n%s\n%s", name, config, &said)
		}
	}
}
