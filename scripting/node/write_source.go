package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/scripting"
)

// SourceWrite is a new text for the file of a script.
type SourceWrite struct {
	Text string `json:"text"`
	// Replaces is the text that the file must have, so that no change of somebody else is
	// lost.
	Replaces string `json:"replaces"`
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
		err = errors.New("cannot write an empty script: set text")
	case len(req.Text) > scripting.MaxFileSize:
		err = fmt.Errorf("cannot write a script of %d bytes: the limit is %d", len(req.Text), scripting.MaxFileSize)
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
		fmt.Fprintf(w, "wrote %s\n", c.script.File.Name)
	}
}

// writeSource writes the file, unless it has changed.
func (c *Component) writeSource(req SourceWrite) (*SourceConflict, error) {
	f := c.script.File
	if f.Path == "" {
		return nil, fmt.Errorf("%s ships with weir and has no file: copy it to the folder of scripts with 'weir components --source %s'", c.script.Name, c.script.Name)
	}
	err := files.Inside(c.script.Folder, f.Path)
	if errors.Is(err, fs.ErrNotExist) {
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
		return &SourceConflict{Message: f.Name + " has changed since it was read", Text: string(text)}, nil
	}
	_, err = files.Do(f.Path, "writing", func() (struct{}, error) { return struct{}{}, files.Rewrite(f.Path, req.Text) })
	return nil, err
}
