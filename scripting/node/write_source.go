package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/scripting"
)

// SourceWrite is a new text for the file of a script.
type SourceWrite struct {
	Text string `json:"text"`
	// Replaces is the text that the file must have, so that no change of somebody else is
	// lost.
	Replaces string `json:"replaces"`
	// Test is the name of a test file in the folder of the script, which is written
	// instead of the script. If Replaces is empty, the file may not exist.
	Test string `json:"test,omitempty"`
}

// SourceConflict is the response if the file has another text than expected.
type SourceConflict struct {
	Message string `json:"message"`
	Text    string `json:"text"` // of the file
}

// serveWriteSource writes the file of the script. The reload follows from the change of
// the file, as after any other change.
func (c *Component) serveWriteSource(w http.ResponseWriter, r *http.Request) {
	var req SourceWrite
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 2*maxRequest)).Decode(&req)
	switch {
	case err != nil:
		err = fmt.Errorf("cannot read the request: %w", err)
	case req.Text == "":
		err = errors.New("cannot write an empty file: set text")
	case len(req.Text) > scripting.MaxFileSize:
		err = fmt.Errorf("cannot write a file of %d bytes: the limit is %d", len(req.Text), scripting.MaxFileSize)
	case req.Test != "" && !c.isTest(req.Test):
		ext := path.Ext(c.script.File.Name)
		err = fmt.Errorf("cannot write %q: the name of a test consists of letters, digits, _, - and dots, and ends in _test%s or .test%s", req.Test, ext, ext)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mem.writing.Lock()
	defer c.mem.writing.Unlock()
	conflict, err := c.writeSource(req)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusForbidden)
	case conflict != nil:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(conflict) // the client is gone
	default:
		fmt.Fprintf(w, "wrote %s\n", c.written(req).Name)
	}
}

var testName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*(_test|\.test)$`)

// isTest reports whether a file may be written as a test of the script.
func (c *Component) isTest(name string) bool {
	base, ok := strings.CutSuffix(name, path.Ext(c.script.File.Name))
	return ok && testName.MatchString(base)
}

// written returns the file that is written.
func (c *Component) written(req SourceWrite) scripting.File {
	f := c.script.File
	if req.Test != "" && f.Path != "" {
		f.Name, f.Path = path.Join(path.Dir(f.Name), req.Test), filepath.Join(filepath.Dir(f.Path), req.Test)
	}
	return f
}

// writeSource writes the file, unless it has changed.
func (c *Component) writeSource(req SourceWrite) (*SourceConflict, error) {
	f := c.written(req)
	if f.Path == "" {
		return nil, fmt.Errorf("%s ships with weir and has no file: copy it to the folder of scripts with 'weir components --source %s'", c.script.Name, c.script.Name)
	}
	err := files.Inside(c.script.Folder, f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		if req.Test != "" && req.Replaces == "" {
			return nil, c.create(f, req.Text)
		}
		return &SourceConflict{Message: f.Name + " has been removed"}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot write %s: %w", f.Name, err)
	}
	text, err := files.Read(f.Path, scripting.MaxFileSize)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", f.Name, err)
	}
	if string(text) != req.Replaces {
		reason := " has changed since it was read"
		if req.Test != "" && req.Replaces == "" {
			reason = " exists already"
		}
		return &SourceConflict{Message: f.Name + reason, Text: string(text)}, nil
	}
	_, err = files.Do(f.Path, "writing", func() (struct{}, error) { return struct{}{}, files.Rewrite(f.Path, req.Text) })
	return nil, err
}

// create writes a new file in the folder of the script.
func (c *Component) create(f scripting.File, text string) error {
	if err := files.Inside(c.script.Folder, filepath.Dir(f.Path)); err != nil {
		return fmt.Errorf("cannot write %s: %w", f.Name, err)
	}
	_, err := files.Do(f.Path, "writing", func() (struct{}, error) { return struct{}{}, files.Create(f.Path, text) })
	return err
}
