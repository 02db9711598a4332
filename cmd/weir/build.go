package main

import (
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/pflag"
)

// Build describes a running weir: the program and its settings.
type Build struct {
	Version  string   `json:"version"`
	Revision string   `json:"revision,omitempty"` // commit; it is missing if Go did not record it
	Modified bool     `json:"modified,omitempty"` // whether files differed from the commit
	Go       string   `json:"go_version"`
	Platform string   `json:"platform"` // such as linux/amd64
	Tags     []string `json:"tags"`     // of the build
	Licence  string   `json:"licence"`
	Storage  string   `json:"storage_path"`
	// Settings are the flags of weir run, and the environment variables for Go's memory.
	Settings []Setting `json:"settings"`
}

// Setting is a flag or an environment variable.
type Setting struct {
	Name    string `json:"name"` // such as --storage.path or GOMEMLIMIT
	Value   string `json:"value"`
	Default string `json:"default"`
	SetBy   string `json:"set_by"` // flag, environment or default
	Doc     string `json:"doc"`
}

func newBuild(storage string, settings []Setting) Build {
	if dir, err := filepath.Abs(storage); err == nil { // commands in another directory need it
		storage = dir
	}
	b := Build{
		Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Tags: []string{},
		Licence: licence(), Storage: storage, Settings: append([]Setting{}, settings...),
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		case "-tags":
			b.Tags = strings.FieldsFunc(s.Value, func(r rune) bool { return r == ',' })
		}
	}
	return b
}

// goVariables are environment variables that the Go runtime reads.
var goVariables = []struct{ name, without, doc string }{
	{"GOGC", "set by weir", "target of the garbage collector, in percent; without it, weir adjusts the target"},
	{"GOMEMLIMIT", "no limit", "soft limit of memory"},
	{"GOMAXPROCS", "number of CPUs", "number of threads that run Go code"},
}

// settingsOf returns the flags of a command, sorted, and environment variables.
func settingsOf(flags *pflag.FlagSet, lookupEnv func(name string) (string, bool)) (out []Setting) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		s := Setting{Name: "--" + f.Name, Value: f.Value.String(), Default: f.DefValue, SetBy: "default", Doc: f.Usage}
		if f.Changed {
			s.SetBy = "flag"
		}
		out = append(out, s)
	})
	for _, v := range goVariables {
		s := Setting{Name: v.name, Value: v.without, Default: v.without, SetBy: "default", Doc: v.doc}
		if value, ok := lookupEnv(v.name); ok && value != "" {
			s.Value, s.SetBy = value, "environment"
		}
		out = append(out, s)
	}
	return out
}
