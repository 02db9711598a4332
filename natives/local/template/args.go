package template

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting/grant"
)

// Arguments of local.template.
type Arguments struct {
	// Template, in Go's syntax.
	Template string `alloy:"template,attr,optional"`
	// File with the template, a regular file of at most 1 MiB. A change of it renders
	// the template again.
	TemplateFile string `alloy:"template_file,attr,optional"`
	// File to write. A relative path is relative to the working directory of weir. Its
	// folder must exist. If it is a symbolic link, its target is written.
	Destination string `alloy:"destination,attr"`
	// Values for the functions getv, gets, ls and so on, by key: the values that a
	// component such as remote.etcd exports.
	Values map[string]component.OptionalSecret `alloy:"values,attr,optional"`
	// More data, such as exports of other components: { hosts = … } is .hosts in the
	// template.
	Data map[string]any `alloy:"data,attr,optional"`
	// Variables for the function getenv. Templates do not see the environment of weir.
	Env map[string]string `alloy:"env,attr,optional"`
	// Permissions of the file, in octal digits. Default: those of the existing file; for a
	// new file "0644", or "0600" if there are secrets in the values or the data.
	Mode string `alloy:"mode,attr,optional"`
	// User who owns the file, by name or number. Default: the user of weir.
	Owner string `alloy:"owner,attr,optional"`
	// Group that owns the file, by name or number. Default: the group of weir.
	Group string `alloy:"group,attr,optional"`
	// Program to run before the file is replaced, with its arguments. If it fails, the
	// old file stays. In the arguments, {{.src}} is the path of the new file, which is in
	// the same folder, and {{.dest}} is the path of the destination.
	CheckCommand []string `alloy:"check_command,attr,optional"`
	// Program to run after the file was replaced, with its arguments; {{.dest}} is the
	// path of the destination.
	ReloadCommand []string `alloy:"reload_command,attr,optional"`
	// Time limit of a command.
	CommandTimeout time.Duration `alloy:"command_timeout,attr,optional"`

	// Grants the access that the commands need.
	Allow Allow `alloy:"allow,block,optional"`
}

// Allow is the content of the block allow.
type Allow struct {
	// The programs that may be run: an absolute path, which may be followed by the
	// allowed arguments, as in the block allow of scripts.
	Exec []string `alloy:"exec,attr,optional"`
}

// SetToDefault sets the defaults.
func (a *Arguments) SetToDefault() { *a = Arguments{CommandTimeout: 30 * time.Second} }

// Validate returns all errors in the arguments, joined.
func (a *Arguments) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if (a.Template == "") == (a.TemplateFile == "") {
		add("template_file and template: exactly one of them must be set")
	}
	if a.Template != "" {
		if _, err := parse("template", a.Template); err != nil {
			errs = append(errs, err)
		}
	}
	if a.Destination == "" || strings.HasSuffix(a.Destination, "/") {
		add("destination %q must be the path of a file", a.Destination)
	}
	if a.Mode != "" {
		if m, err := strconv.ParseUint(a.Mode, 8, 32); err != nil || m > 0o777 {
			add("mode %q must be octal digits from 0000 to 0777", a.Mode)
		}
	}
	if (a.Owner != "" || a.Group != "") && runtime.GOOS == "windows" {
		add("owner and group cannot be set on Windows")
	}
	if a.CommandTimeout <= 0 {
		add("command_timeout is %s, must be greater than 0", a.CommandTimeout)
	}
	grants, err := a.grants()
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	for name, command := range map[string][]string{"check_command": a.CheckCommand, "reload_command": a.ReloadCommand} {
		if _, ok := find(grants, fill(command, a.stage(), a.Destination)); len(command) > 0 && !ok {
			add("%s runs %q, which the block does not grant: add %q to exec in the block allow", name, strings.Join(command, " "), pattern(command))
		}
	}
	if len(a.CheckCommand)+len(a.ReloadCommand) == 0 && len(a.Allow.Exec) > 0 {
		add("allow grants programs, but there is neither check_command nor reload_command")
	}
	return errors.Join(errs...)
}

// CheckStorage refuses to write into weir's storage directory.
func (a *Arguments) CheckStorage(dir string) []*component.ArgumentError {
	path, err := filepath.Abs(a.Destination)
	if rel, e := filepath.Rel(dir, path); err != nil || e != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return nil
	}
	return []*component.ArgumentError{{Path: "destination", Err: fmt.Errorf("destination %q is in the storage directory of weir, %s: write another folder", a.Destination, dir)}}
}

func (a *Arguments) grants() (out []grant.Command, err error) {
	var errs []error
	for _, text := range a.Allow.Exec {
		g, err := grant.ParseCommand(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("exec: %w", err))
		}
		out = append(out, g)
	}
	return out, errors.Join(errs...)
}

// stage returns a path like that of a new file, for a check of the grants.
func (a *Arguments) stage() string {
	return filepath.Join(filepath.Dir(a.Destination), unfinished+"1")
}

// find returns the grant that allows a command.
func find(grants []grant.Command, command []string) (grant.Command, bool) {
	i := slices.IndexFunc(grants, func(g grant.Command) bool {
		return len(command) > 0 && g.Is(command[0]) && g.MatchArgs(command[1:])
	})
	if i < 0 {
		return grant.Command{}, false
	}
	return grants[i], true
}

// fill replaces the placeholders in a command.
func fill(command []string, src, dest string) []string {
	r := strings.NewReplacer("{{.src}}", src, "{{ .src }}", src, "{{.dest}}", dest, "{{ .dest }}", dest)
	out := make([]string, len(command))
	for i, arg := range command {
		out[i] = r.Replace(arg)
	}
	return out
}

// pattern returns the grant to write for a command.
func pattern(command []string) string {
	words := fill(command, "*", "*")
	for i, w := range words {
		if strings.ContainsAny(w, " ") {
			words[i] = "'" + w + "'"
		}
	}
	if !filepath.IsAbs(words[0]) {
		words[0] = "/usr/bin/" + words[0]
	}
	return strings.Join(words, " ")
}

// secret reports whether there are secrets in the arguments.
func (a *Arguments) secrets() (out []string) {
	for _, v := range a.Values {
		if v.IsSecret {
			out = append(out, v.Value)
		}
	}
	_, more := plain(a.Data)
	return append(out, more...)
}

// mode returns the permissions of the file, given those of the existing file, or 0.
func (a *Arguments) mode(existing os.FileMode) os.FileMode {
	if m, err := strconv.ParseUint(a.Mode, 8, 32); err == nil {
		return os.FileMode(m)
	}
	switch {
	case existing != 0:
		return existing
	case len(a.secrets()) > 0:
		return 0o600
	}
	return 0o644
}
