package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestSBOM validates the bill of a config with a signed package against the schema of
// CycloneDX, which comes with the library.
func TestSBOM(t *testing.T) {
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatalf("cannot find the schema: %v", err)
	}
	c := jsonschema.NewCompiler()
	for url, file := range map[string]string{"bom-1.6.schema.json": "bom-1.6.schema.json", "spdx.schema.json": "spdx.schema.json", "jsf-0.82.schema.json": "jsf-0.82.schemax.json"} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(module)), "schema", file))
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err == nil {
			err = c.AddResource("http://cyclonedx.org/schema/"+url, v)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	schema, err := c.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}

	dir := t.TempDir()
	for name, text := range map[string]string{
		"config.alloy":               "import.scripts \"acme\" {\n\tpath = \"acme/scripts\"\n}\n\nacme.tag \"default\" {\n\tforward_to = []\n}\n\nmetrics.rename \"default\" {\n\tforward_to = []\n}\n",
		"acme/weir-package.toml":     "name = 'acme/http'\nversion = '1.2.0'\napi = 1\nlicense = 'MIT OR Apache-2.0'\n",
		"acme/scripts/tag.lua":       "return require('weir').transform { metrics = function(batch) batch:set_label('x', 'y') end }\n",
		"scripts/metrics/rename.lua": "return require('weir').transform { metrics = function(batch) batch:set_label('x', 'y') end }\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if code := execute(t.Context(), &terminal{out: &out, err: &errs}, args); code != exitOK {
			t.Fatalf("weir %v: exit code %d: %s", args, code, errs.String())
		}
		return out.String()
	}
	key := filepath.Join(dir, "key")
	run("pkg", "keygen", key)
	run("pkg", "lock", filepath.Join(dir, "acme"))
	run("pkg", "sign", "--key="+key, filepath.Join(dir, "acme"))
	for _, args := range [][]string{{"sbom"}, {"sbom", filepath.Join(dir, "config.alloy")}} {
		text := run(args...)
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("weir %v: %v", args, err)
		}
		if again := run(args...); again != text {
			t.Errorf("weir %v writes different bills", args)
		}
	}
	var bom struct {
		Components []struct {
			Type, Name, Version string
			Hashes              []struct{ Alg, Content string }
		}
	}
	if err := json.Unmarshal([]byte(run("sbom", filepath.Join(dir, "config.alloy"))), &bom); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range bom.Components {
		hash := len(c.Hashes) == 1 && c.Hashes[0].Alg == "SHA-256" && len(c.Hashes[0].Content) == 64
		switch name := filepath.ToSlash(c.Name); {
		case c.Name == "github.com/spf13/cobra", c.Name == "acme/http", strings.HasSuffix(name, "tag.lua"), strings.HasSuffix(name, "rename.lua"):
			got = append(got, c.Type)
			if !hash {
				t.Errorf("%s has the hashes %v", c.Name, c.Hashes)
			}
		}
	}
	if want := "library library file file"; strings.Join(got, " ") != want {
		t.Errorf("got components of the types %q, want %q", got, want)
	}
}
