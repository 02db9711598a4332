package config

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-run/weir/engine/component"
)

// Import is an import block.
type Import struct {
	*Block
	// File is the file or directory of import.file, as written.
	File string
	// Poll is the poll interval of File. 0 means that the operating system reports
	// changes.
	Poll time.Duration
	// Content is the content of import.string.
	Content *Expression
	// Scripts is the folder of import.scripts, as written.
	Scripts string
	// Remote is the source of import.git, import.http or import.oci; nil for other imports.
	Remote *Remote
}

// imports are the names of all import blocks, sorted.
var imports = []string{"import.file", "import.git", "import.http", "import.oci", "import.scripts", "import.string"}

// importFile contains the arguments of import.file.
type importFile struct {
	Filename      string        `alloy:"filename,attr"`
	Detector      string        `alloy:"detector,attr,optional"`
	PollFrequency time.Duration `alloy:"poll_frequency,attr,optional"`
}

// SetToDefault sets Alloy's defaults.
func (a *importFile) SetToDefault() {
	*a = importFile{Detector: "fsnotify", PollFrequency: time.Minute}
}

// Validate returns all errors in the arguments, joined.
func (a *importFile) Validate() error {
	var errs []error
	if a.Filename == "" {
		errs = append(errs, errors.New("filename must not be empty"))
	}
	if a.Detector != "fsnotify" && a.Detector != "poll" {
		errs = append(errs, fmt.Errorf("detector is %q, want \"fsnotify\" or \"poll\"", a.Detector))
	}
	if a.PollFrequency <= 0 {
		errs = append(errs, fmt.Errorf("poll_frequency is %s, must be greater than 0", a.PollFrequency))
	}
	return errors.Join(errs...)
}

// importScripts contains the arguments of import.scripts.
type importScripts struct {
	Path string `alloy:"path,attr"`
}

// Validate returns the error in the arguments.
func (a *importScripts) Validate() error {
	if a.Path == "" {
		return errors.New("path must not be empty")
	}
	return nil
}

// IsImport reports whether the block is an import.
func (b *Block) IsImport() bool {
	return slices.Contains(imports, b.Name)
}

// Import decodes an import block. It returns nil if there are errors. The
// constants come from s.
func (b *Block) Import(s *Scope) (*Import, Diagnostics) {
	im := &Import{Block: b}
	ds := b.CheckLabel(LabelRequired)
	switch b.Name {
	case "import.file":
		var a importFile
		ds = append(ds, b.decodeConstant(b.stmt, s, &a)...)
		if im.File = a.Filename; a.Detector == "poll" {
			im.Poll = a.PollFrequency
		}
	case "import.scripts":
		var a importScripts
		ds = append(ds, b.decodeConstant(b.stmt, s, &a)...)
		im.Scripts = a.Path
	case "import.string":
		xs, more := b.settings(&struct{}{}, "content")
		ds = append(ds, more...)
		if im.Content = xs["content"]; im.Content == nil {
			ds.add(b.Span, "missing required attribute content", "")
		}
	default:
		var more Diagnostics
		im.Remote, more = b.remote(s)
		ds = append(ds, more...)
	}
	if ds.HasErrors() {
		return nil, ds
	}
	return im, ds
}

// Text returns the text of a value that is a string or a secret, as
// import.string accepts it.
func Text(v any) (text string, secret, ok bool) {
	switch v := v.(type) {
	case string:
		return v, false, true
	case component.Secret:
		return string(v), true, true
	case *component.Secret:
		return string(*v), true, true
	case component.OptionalSecret:
		return v.Value, v.IsSecret, true
	case *component.OptionalSecret:
		return v.Value, v.IsSecret, true
	}
	return "", false, false
}
