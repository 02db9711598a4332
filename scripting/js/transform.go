package js

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"
	"github.com/evanw/esbuild/pkg/api"
	"github.com/go-sourcemap/sourcemap"

	"github.com/weir-run/weir/scripting"
)

// wrapper makes a file a function. It is on its own line, which the source map
// takes into account.
const (
	wrapperHead = `(function (exports, require, module) { "use strict";`
	wrapperTail = `})`
)

// supported specifies which features of esbuild's target goja supports, so that
// esbuild lowers the rest or reports an error.
var supported = map[string]bool{
	"async-generator": false,
	"for-await":       false,
	"top-level-await": false,
	"import-meta":     false,
	"dynamic-import":  false,
	"decorators":      false,
	"using":           false,
}

// compile compiles a file of the program.
func (p *program) compile(f scripting.File) (*chunk, error) {
	c, err := p.parse(f)
	if err != nil {
		return nil, err
	}
	p.cover(c)
	p.mark(c)
	if c.prog, err = goja.CompileAST(c.tree, true); err != nil {
		return nil, c.syntaxError(err)
	}
	return c, nil
}

// parse returns a file with its restricted tree.
func (p *program) parse(f scripting.File) (*chunk, error) {
	limitPatterns()
	f.Text = strings.TrimPrefix(f.Text, "\ufeff")
	if line, err := checkNesting(f.Text); err != nil {
		return nil, f.Error(line, hookLoad, err)
	}
	if line, err := checkRedeclared(f.Text); err != nil {
		return nil, f.Error(line, hookLoad, err)
	}
	loader := api.LoaderJS
	if path.Ext(f.Name) == ".ts" {
		loader = api.LoaderTS
	}
	r := api.Transform(f.Text, api.TransformOptions{
		Loader:         loader,
		Format:         api.FormatCommonJS,
		Target:         api.ES2022,
		Supported:      supported,
		Sourcemap:      api.SourceMapExternal,
		SourcesContent: api.SourcesContentExclude,
		Sourcefile:     "x",
		Banner:         wrapperHead,
		Footer:         wrapperTail,
		LegalComments:  api.LegalCommentsNone,
		Charset:        api.CharsetUTF8,
		TsconfigRaw:    `{"compilerOptions":{"experimentalDecorators":false,"useDefineForClassFields":true}}`,
		LogLevel:       api.LogLevelSilent,
	})
	if len(r.Errors) > 0 {
		return nil, p.transformErrors(f, r.Errors)
	}
	c := &chunk{file: f, code: string(r.Code)}
	tree, err := parser.ParseFile(nil, f.Name, c.code, 0, parser.WithDisableSourceMaps)
	if err != nil {
		return nil, c.syntaxError(err)
	}
	smap, err := sourceMap(f, r.Map)
	if err != nil {
		return nil, f.Error(0, "load", err)
	}
	tree.File.SetSourceMap(smap)
	c.tree, c.smap = tree, smap
	restrict(c.tree)
	c.scanTree()
	if len(c.errs) > 0 {
		return nil, errors.Join(c.errs...)
	}
	return c, nil
}

// maxErrors is the maximum number of reported errors per file. Each contains
// its line, which may be the whole file.
const maxErrors = 20

// transformErrors converts esbuild's messages.
func (p *program) transformErrors(f scripting.File, ms []api.Message) error {
	shown := ms[:min(len(ms), maxErrors)]
	errs := make([]error, len(shown))
	for i, m := range shown {
		line, col := 0, 0
		if m.Location != nil {
			line, col = m.Location.Line, m.Location.Column+1
		}
		e := f.Error(line, "load", errors.New(m.Text))
		e.Col = col
		if len(m.Notes) > 0 {
			e.Hint = m.Notes[0].Text
		}
		if strings.HasPrefix(m.Text, "Top-level await") {
			e.Err = errors.New("cannot await outside of a function: a file runs to its end before anything can wait")
			e.Hint = p.awaitHint
		}
		errs[i] = e
	}
	if more := len(ms) - len(shown); more > 0 {
		errs = append(errs, f.Error(0, hookLoad, fmt.Errorf("%d more errors are not shown", more)))
	}
	return errors.Join(errs...)
}

// syntaxError converts an error of goja's parser or compiler that esbuild does
// not detect.
func (c *chunk) syntaxError(err error) error {
	if list, ok := errors.AsType[parser.ErrorList](err); ok && len(list) > 0 {
		return c.file.Error(0, "load", fmt.Errorf("cannot compile: %s", list[0].Message))
	}
	if e, ok := errors.AsType[*goja.CompilerSyntaxError](err); ok {
		at := e.File.Position(e.Offset)
		out := c.file.Error(at.Line, "load", errors.New(e.Message))
		out.Col = at.Column
		return out
	}
	return c.file.Error(0, "load", fmt.Errorf("cannot compile: %w", err))
}

// sourceMap parses esbuild's source map for goja. goja's columns start at 1,
// those of source maps at 0.
func sourceMap(f scripting.File, text []byte) (*sourcemap.Consumer, error) {
	var m struct {
		Version  int      `json:"version"`
		Sources  []string `json:"sources"`
		Names    []string `json:"names"`
		Mappings string   `json:"mappings"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("cannot read the source map: %w", err)
	}
	if strings.Trim(m.Mappings, ";") == "" {
		return nil, nil // a file with only types or comments has no code
	}
	m.Sources, m.Names = []string{sourceURL(f)}, []string{}
	m.Mappings = shiftColumns(m.Mappings)
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return sourcemap.Parse("", text)
}

// sourceURL returns the name of the source in a map. goja resolves it relative
// to the file for the text of a stack; the name in a frame is that of the file.
func sourceURL(f scripting.File) string { return url.PathEscape(path.Base(f.Name)) }

// shiftColumns adds one to all columns of a map's mappings. Columns are stored
// as differences: in the output from the beginning of the line, in the source
// from the previous mapping in the file. It is therefore enough to change the
// first of each.
func shiftColumns(mappings string) string {
	var b strings.Builder
	first := true
	for i, line := range strings.Split(mappings, ";") {
		if i > 0 {
			b.WriteByte(';')
		}
		if line == "" {
			continue
		}
		segment, rest, more := strings.Cut(line, ",")
		fields := vlqDecode(segment)
		fields[0]++
		if first && len(fields) >= 4 {
			fields[3]++
			first = false
		}
		for _, n := range fields {
			vlqEncode(&b, n)
		}
		if more {
			b.WriteByte(',')
			b.WriteString(rest)
		}
	}
	return b.String()
}

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

func vlqDecode(s string) (out []int) {
	n, shift := 0, 0
	for i := range len(s) {
		d := strings.IndexByte(base64Digits, s[i])
		n |= d & 31 << shift
		if d&32 != 0 {
			shift += 5
			continue
		}
		if n&1 != 0 {
			out = append(out, -(n >> 1))
		} else {
			out = append(out, n>>1)
		}
		n, shift = 0, 0
	}
	return out
}

func vlqEncode(b *strings.Builder, n int) {
	n <<= 1
	if n < 0 {
		n = -n | 1
	}
	for {
		d := n & 31
		if n >>= 5; n > 0 {
			d |= 32
		}
		b.WriteByte(base64Digits[d])
		if n == 0 {
			return
		}
	}
}
