//go:build !race

package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestContributing executes the recipes of CONTRIBUTING.md, one after the other,
// in a copy of the repository. By language of the code block:
//
//	sh     is run, line by line; targets of make must be in the Makefile
//	text   is in the output of the block sh above it; … stands for any text
//	diff   changes a file; see patch
//	other  is the file that the comment in its first line names
//
// It runs the commands only if WEIR_RECIPES is set, as `make recipes` does,
// because they take minutes. With -race, the test is skipped.
func TestContributing(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := docBlocks(root, "CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	r := &recipes{root: root, dir: t.TempDir()}
	if err := copyRepository(r.dir, root); err != nil {
		t.Fatal(err)
	}
	var output string
	for _, b := range blocks {
		isCommand := b.lang == "sh" || b.lang == "text"
		if b.skip != "" {
			t.Logf("%v is not run: %s", b, b.skip)
		} else if isCommand && os.Getenv("WEIR_RECIPES") == "" {
			continue
		} else if err := r.follow(b, &output); err != nil {
			t.Fatalf("%v: %v", b, err) // the following blocks need it
		}
	}
}

// recipes executes recipes in dir, a copy of root.
type recipes struct{ root, dir string }

// follow executes a block. output is the output of the last sh block.
func (r *recipes) follow(b docBlock, output *string) error {
	switch b.lang {
	case "sh":
		*output = ""
		for line := range strings.Lines(b.text) {
			out, err := r.run(strings.TrimSpace(line))
			if err != nil {
				return fmt.Errorf("%s: %w\n%s", line, err, out)
			}
			*output += out
		}
		return nil
	case "text":
		if !outputPattern(b.text).MatchString(*output) {
			return fmt.Errorf("the block sh above it did not print this:\n%s\nbut this:\n%s", b.text, *output)
		}
		return nil
	case "diff":
		head, change, _ := strings.Cut(b.text, "\n")
		file, ok := strings.CutPrefix(head, "--- ")
		if !ok {
			return fmt.Errorf("its first line is %q, want --- and the file", head)
		}
		path := filepath.Join(r.dir, file)
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		changed, err := patch(string(text), change)
		if err != nil {
			return fmt.Errorf("cannot change %s: %w", file, err)
		}
		return os.WriteFile(path, []byte(changed), 0o600)
	}
	if b.file == "" {
		return fmt.Errorf("its first line is no comment with a path")
	}
	_, text, _ := strings.Cut(b.text, "\n")
	path := filepath.Join(r.dir, b.file)
	if _, err := os.Stat(path); err == nil {
		return fmt.Errorf("%s exists already: use another name for your own, or another example in CONTRIBUTING.md", b.file)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strings.TrimPrefix(text, "\n")), 0o600)
}

// run runs a command line in the copy. gofmt must print nothing.
func (r *recipes) run(line string) (string, error) {
	words := strings.Fields(line)
	switch {
	case len(words) == 0 || slices.Contains([]string{"git", "bin/weir"}, words[0]):
		return "", nil // the copy contains neither
	case words[0] == "make":
		return (&docRunner{root: r.root}).runLine(nil, line)
	case words[0] != "go" && words[0] != "gofmt":
		return "", fmt.Errorf("do not know whether %s may be run: add it to the test", words[0])
	}
	cmd := exec.Command("bash", "-ec", line)
	cmd.Dir = r.dir
	// Without the path of the copy in the packages, the build cache is shared.
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "GOFLAGS=-trimpath")
	out, err := cmd.CombinedOutput()
	if err == nil && words[0] == "gofmt" && len(out) > 0 {
		err = fmt.Errorf("the files are not formatted")
	}
	return string(out), err
}

// patch applies a change to a text. Its parts are separated by lines "@@". The
// lines of a part that begin with a space or - must occur exactly once in the
// text, as consecutive lines; they are replaced by the lines that begin with a
// space or +.
func patch(text, change string) (string, error) {
	for part := range strings.SplitSeq(change, "@@\n") {
		var from, to strings.Builder
		for line := range strings.Lines(part) {
			switch line[0] {
			case ' ':
				from.WriteString(line[1:])
				to.WriteString(line[1:])
			case '-':
				from.WriteString(line[1:])
			case '+':
				to.WriteString(line[1:])
			default:
				return "", fmt.Errorf("%q does not begin with a space, + or -", line)
			}
		}
		whole, at := "\n"+text, "\n"+from.String()
		first, last := strings.Index(whole, at), strings.LastIndex(whole, at)
		if from.Len() == 0 || first < 0 || first != last {
			return "", fmt.Errorf("these lines must occur once in it:\n%s", from.String())
		}
		text = whole[1:first+1] + to.String() + whole[first+len(at):]
	}
	return text, nil
}

// copyRepository copies all files except hidden and generated ones.
func copyRepository(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == from {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") || rel == "bin" || rel == "data-weir" {
				return fs.SkipDir
			}
			return os.Mkdir(filepath.Join(to, rel), 0o700)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), text, 0o600)
	})
}

// TestContributingMistakes: TestContributing detects wrong recipes.
func TestContributingMistakes(t *testing.T) {
	_, noBash := exec.LookPath("bash")
	f := func(lang, file, text, want string) {
		t.Helper()
		if lang == "sh" && noBash != nil {
			return
		}
		r := &recipes{root: filepath.Join("..", ".."), dir: t.TempDir()}
		if err := os.WriteFile(filepath.Join(r.dir, "a.go"), []byte("one\ntwo\ntwo\nthree\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		output := "weir is ready\n"
		err := r.follow(docBlock{lang: lang, file: file, text: text}, &output)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s %q: got %v, want %q", lang, text, err, want)
		}
	}
	f("sh", "", "rm -rf x\n", "do not know whether rm may be run")
	f("sh", "", "make no-such-target\n", "no target no-such-target")
	f("sh", "", "gofmt -l a.go\n", "exit status")
	f("text", "", "weir is stopped", "did not print this")
	f("text", "", "weir … ready", "")
	f("go", "", "package a\n", "no comment with a path")
	f("go", "a.go", "// a.go\npackage a\n", "a.go exists already")
	f("go", "b/b.go", "// b/b.go\npackage b\n", "")
	f("diff", "", "+++ a.go\n", "want --- and the file")
	f("diff", "", "--- b.go\n one\n", "b.go")
	f("diff", "", "--- a.go\n one\n+more\n@@\n-three\n", "")
	f("diff", "", "--- a.go\n two\n+more\n", "must occur once")
	f("diff", "", "--- a.go\n on\n+more\n", "must occur once")
	f("diff", "", "--- a.go\n+more\n", "must occur once")
	f("diff", "", "--- a.go\nmore\n", "does not begin with")

	got, err := patch("one\ntwo\nthree\n", "-one\n+1\n two\n@@\n+2.5\n three\n")
	if want := "1\ntwo\n2.5\nthree\n"; got != want || err != nil {
		t.Errorf("got %q and error %v, want %q", got, err, want)
	}
}
