package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// docBlock is a fenced code block of a page.
type docBlock struct {
	page string
	line int
	lang string
	skip string // the reason why the block is not run: ```sh skip="…"
	file string // file name from a comment in its first line
	text string
}

func (b docBlock) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

var (
	openFence = regexp.MustCompile("^( *)```+([\\w-]*)(?: skip=\"(.+)\")?$")
	fileName  = regexp.MustCompile(`^(?://|--|#) (\S+\.\w+)$`)
)

// docBlocks returns the code blocks of a page. The path of the page is relative
// to root.
func docBlocks(root, page string) ([]docBlock, error) {
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		return nil, err
	}
	var blocks []docBlock
	var open *docBlock
	var indent string
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case open != nil && strings.TrimSpace(line) == "```":
			if m := fileName.FindStringSubmatch(strings.SplitN(open.text, "\n", 2)[0]); m != nil {
				open.file = m[1]
			} else if open.lang == "alloy" {
				open.file = fmt.Sprintf("%s_%d.alloy", strings.TrimSuffix(filepath.Base(page), ".md"), open.line)
			}
			blocks, open = append(blocks, *open), nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			m := openFence.FindStringSubmatch(line)
			if m == nil {
				return nil, fmt.Errorf("%s:%d: cannot read the info string of %q", page, i+1, line)
			}
			indent, open = m[1], &docBlock{page: page, line: i + 1, lang: m[2], skip: m[3]}
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%s has no end", open)
	}
	return blocks, nil
}

// allDocBlocks returns the code blocks of the README and of docs, except those of
// the generated reference, because the tests of the manuals run its examples.
func allDocBlocks(root string) ([]docBlock, error) {
	pages := []string{"README.md"}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, d os.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		if rel = filepath.ToSlash(rel); err == nil && filepath.Ext(path) == ".md" && !strings.HasPrefix(rel, "docs/reference/") {
			pages = append(pages, rel)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var blocks []docBlock
	for _, page := range pages {
		more, err := docBlocks(root, page)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, more...)
	}
	return blocks, nil
}

// TestDocs checks or runs every code block of the README and of docs, in one
// directory. A block with a file name in a comment in its first line is the
// content of that file, and must have the same text on all pages. By language:
//
//	alloy         is formatted and passes weir check
//	lua, js, ts   passes weir check, and weir test with its tests and examples
//	sh            is run, line by line; see runDocLine
//	text          is in the output of the block sh above it; … stands for any text
//	json, yaml    can be parsed
//
// A block with skip="reason" in its info string is not run.
func TestDocs(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs many commands")
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	blocks, err := allDocBlocks(root)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]docBlock{}
	for _, b := range blocks {
		if b.file == "" || b.skip != "" {
			continue
		}
		if first, ok := files[b.file]; ok && first.text != b.text {
			t.Errorf("%v and %v show different texts of %s", first, b, b.file)
		}
		files[b.file] = b
		path := filepath.Join(dir, b.file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(b.text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := &docRunner{dir: dir, root: root}
	out, err := d.run("weir check scripts && weir test")
	warned := func(line string) bool { // pages do not show the test of every script
		return strings.Contains(line, "warning: ") && !strings.HasSuffix(line, "[missing-test]")
	}
	if err != nil || slices.ContainsFunc(strings.Split(out, "\n"), warned) {
		t.Errorf("scripts: %v\n%s", err, out)
	}
	var pages []string
	byPage := map[string][]docBlock{}
	for _, b := range blocks {
		if byPage[b.page] == nil {
			pages = append(pages, b.page)
		}
		byPage[b.page] = append(byPage[b.page], b)
	}
	for _, page := range pages {
		t.Run(page, func(t *testing.T) {
			var output string
			for _, b := range byPage[page] {
				if b.skip != "" {
					t.Logf("%v is not run: %s", b, b.skip)
				} else if err := d.test(t, b, &output); err != nil {
					t.Errorf("%v: %v", b, err)
				}
			}
			d.stop(t)
		})
	}
}

// docRunner runs commands in the directory that contains the files of the docs.
type docRunner struct {
	dir, root string
	weir      *exec.Cmd // the running weir, or nil
	log       bytes.Buffer
}

// test checks or runs a block. output is the output of the last sh block.
func (d *docRunner) test(t *testing.T, b docBlock, output *string) (err error) {
	var out string
	switch b.lang {
	case "alloy":
		out, err = d.run("weir check " + b.file + " && weir fmt -t " + b.file)
	case "lua", "js", "ts":
		if !strings.HasPrefix(b.file, "scripts/") {
			err = fmt.Errorf("its first line is no comment with a file name below scripts/")
		}
	case "sh":
		*output = ""
		for line := range strings.Lines(strings.ReplaceAll(b.text, "\\\n", "")) {
			out, err := d.runLine(t, strings.TrimSpace(line))
			if err != nil {
				return fmt.Errorf("%s: %w\n%s", line, err, out)
			}
			*output += out
		}
	case "text":
		if !outputPattern(b.text).MatchString(*output) {
			err = fmt.Errorf("the block sh above it did not print this:\n%s\nbut this:\n%s", b.text, *output)
		}
	case "json":
		var v any
		err = json.Unmarshal([]byte(b.text), &v)
	case "yaml":
		var v any
		err = yaml.Unmarshal([]byte(b.text), &v)
	default:
		err = fmt.Errorf("do not know how to test the language %q", b.lang)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// outputPattern matches output that consists of the lines of text, with any
// amount of white space; … stands for any text.
func outputPattern(text string) *regexp.Regexp {
	p := regexp.QuoteMeta(strings.Join(strings.Fields(text), " "))
	p = strings.ReplaceAll(p, " ", `\s+`)
	return regexp.MustCompile("(?s)" + strings.ReplaceAll(p, "…", ".*?"))
}

var makefileTarget = regexp.MustCompile(`(?m)^([a-z-]+):`)

// runLine runs one command line. The targets of make must be in the Makefile.
// weir run, except with --once, is started and must become ready. It runs until the next weir run or
// the end of the page, so that other commands can communicate with it.
func (d *docRunner) runLine(t *testing.T, line string) (out string, err error) {
	words := strings.Fields(line)
	switch {
	case len(words) == 0 || strings.HasPrefix(line, "#"):
		return "", nil
	case words[0] == "make":
		text, err := os.ReadFile(filepath.Join(d.root, "Makefile"))
		if err != nil {
			return "", err
		}
		var targets []string
		for _, m := range makefileTarget.FindAllStringSubmatch(string(text), -1) {
			targets = append(targets, m[1])
		}
		for _, w := range words[1:] {
			if !strings.Contains(w, "=") && !slices.Contains(targets, w) {
				return "", fmt.Errorf("the Makefile has no target %s", w)
			}
		}
		return "", nil
	case strings.HasPrefix(line, "weir run ") && !strings.Contains(line, " --once"):
		d.stop(t)
		return "", d.start(line)
	case slices.Contains([]string{"weir", "source", "cat", "cp", "curl", "mkdir", "sed", "touch"}, words[0]):
		return d.run(line)
	}
	return "", fmt.Errorf(`do not know whether %s may be run: add it to the test, or skip="reason" to the block`, words[0])
}

func (d *docRunner) command(line string) *exec.Cmd {
	cmd := exec.Command("bash", "-ec", line)
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	return cmd
}

func (d *docRunner) run(line string) (out string, err error) {
	b, err := d.command(line).CombinedOutput()
	return string(b), err
}

// start starts weir run on a free port and waits until it is ready.
func (d *docRunner) start(line string) error {
	d.log.Reset()
	d.weir = d.command("exec " + line + " --server.http.listen-addr=127.0.0.1:0")
	d.weir.Stdout, d.weir.Stderr = &d.log, &d.log
	if err := d.weir.Start(); err != nil {
		return err
	}
	var err error
	for range 600 {
		if _, err = fetch(filepath.Join(d.dir, "data-weir"), "/-/ready"); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond) // weir is another process
	}
	return fmt.Errorf("not ready within a minute: %w", err)
}

// stop stops the running weir.
func (d *docRunner) stop(t *testing.T) {
	if d.weir == nil {
		return
	}
	if err := d.weir.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := d.weir.Wait(); err != nil {
		t.Errorf("%v: %v\n%s", d.weir.Args, err, d.log.String())
	}
	d.weir = nil
}

// TestDocMistakes: TestDocs detects wrong blocks.
func TestDocMistakes(t *testing.T) {
	f := func(lang, file, text, want string) {
		t.Helper()
		d := &docRunner{dir: t.TempDir(), root: filepath.Join("..", "..")}
		output := "weir is ready\n"
		err := d.test(t, docBlock{lang: lang, file: file, text: text}, &output)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s %q: got %v, want %q", lang, text, err, want)
		}
	}
	f("", "", "x", `do not know how to test the language ""`)
	f("cobol", "", "x", `do not know how to test the language "cobol"`)
	f("lua", "", "return 1", "no comment with a file name")
	f("sh", "", "rm -rf x\n", "do not know whether rm may be run")
	f("sh", "", "make no-such-target\n", "no target no-such-target")
	f("sh", "", "# a comment\nmake build VERSION=v1\n", "")
	f("json", "", "{", "unexpected end")
	f("yaml", "", "a: [", "yaml:")
	f("text", "", "weir … ready", "")
	f("text", "", "weir is stopped", "did not print this")

	root := t.TempDir()
	g := func(text, want string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, "x.md"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		blocks, err := docBlocks(root, "x.md")
		if got := fmt.Sprintf("%+v %v", blocks, err); !strings.Contains(got, want) {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	g("```sh\nweir\n", "x.md:1 has no end")
	g("```sh reason=x\nweir\n```\n", "cannot read the info string")
	g("a\n\n  ```sh skip=\"slow\"\n  weir\n  ```\n", "[x.md:3] <nil>")
}
