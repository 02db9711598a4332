package bench

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"
)

//go:embed all:collectors all:logs
var embedded embed.FS

// Templates returns the metrics collectors that weirbench knows, one folder for
// each.
func Templates() fs.FS { return templates("collectors") }

// LogTemplates returns the log collectors.
func LogTemplates() fs.FS { return templates("logs") }

func templates(folder string) fs.FS {
	sub, err := fs.Sub(embedded, folder)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return sub
}

// Collector is a program to measure. It is defined by a folder of templates
// (text/template): collector.json describes the program, and every other file is
// written into the directory of a round.
type Collector struct {
	Name    string // the name of its folder
	Title   string // the title in tables; the name unless another program is used
	Version string
	program string
	files   fs.FS
	spec    spec
}

// spec is the content of collector.json.
type spec struct {
	Programs       []string `json:"programs"`        // paths and names; the first existing one is used
	Version        []string `json:"version"`         // arguments that print the version
	VersionPattern string   `json:"version_pattern"` // the first group is the version
	Args           []string `json:"args"`            // templates
	Scenarios      []string `json:"scenarios"`       // the scenarios that it supports
}

// NotInstalledError means that the program of a collector was not found.
type NotInstalledError struct {
	Name     string
	Programs []string
}

func (e *NotInstalledError) Error() string {
	return fmt.Sprintf("cannot find %s: none of %s is there; `make peers` fetches peers", e.Name, strings.Join(e.Programs, ", "))
}

// FindCollector returns the collector of a folder in templates. wanted is its
// name, or name=program to use another program. If the program does not exist,
// the error is a *NotInstalledError.
func FindCollector(ctx context.Context, templates fs.FS, wanted string) (*Collector, error) {
	name, program, other := strings.Cut(wanted, "=")
	c, err := readCollector(templates, name)
	if err != nil {
		return nil, err
	}
	programs := c.spec.Programs
	if other {
		programs = []string{program}
		c.Title = name + " (" + program + ")"
	}
	for _, p := range programs {
		if found, err := exec.LookPath(p); err == nil {
			if c.program, err = filepath.Abs(found); err != nil {
				return nil, fmt.Errorf("cannot find %s: %w", p, err)
			}
			break
		}
	}
	if c.program == "" {
		return nil, &NotInstalledError{Name: name, Programs: programs}
	}
	return c, c.askVersion(ctx)
}

// readCollector returns a collector without its program.
func readCollector(templates fs.FS, name string) (*Collector, error) {
	c := &Collector{Name: name, Title: name}
	var err error
	if c.files, err = fs.Sub(templates, name); err != nil {
		return nil, fmt.Errorf("cannot use collector %q: %w", name, err)
	}
	b, err := fs.ReadFile(c.files, "collector.json")
	if err != nil {
		return nil, fmt.Errorf("cannot use collector %q: there are %s", name, strings.Join(collectorNames(templates), ", "))
	}
	if err := json.Unmarshal(b, &c.spec); err != nil {
		return nil, fmt.Errorf("cannot read collector.json of %s: %w", name, err)
	}
	return c, nil
}

func collectorNames(templates fs.FS) []string {
	found, _ := fs.Glob(templates, "*/collector.json")
	for i, f := range found {
		found[i] = path.Dir(f)
	}
	return found
}

func (c *Collector) askVersion(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, c.program, c.spec.Version...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot ask %s for its version: %w: %s", c.program, err, strings.TrimSpace(string(out)))
	}
	re, err := regexp.Compile(c.spec.VersionPattern)
	if err != nil {
		return fmt.Errorf("cannot read version_pattern of %s: %w", c.Name, err)
	}
	if m := re.FindSubmatch(out); len(m) == 2 {
		c.Version = string(m[1])
		return nil
	}
	// Debian's vmagent does not print its version; peers.sh writes it to a file
	c.Version = "unknown"
	if b, err := os.ReadFile(c.program + ".version"); err == nil {
		c.Version = strings.TrimSpace(string(b))
	}
	return nil
}

// Does reports whether the collector supports a scenario.
func (c *Collector) Does(scenario string) bool { return slices.Contains(c.spec.Scenarios, scenario) }

// job is the data for templates.
type job struct {
	Dir      string // directory of the round, with the files of the collector
	SinkURL  string
	Targets  []scraped
	Interval string // in whole seconds, such as 5s
	Timeout  string
	Relabel  bool   // whether to drop samples and add a label
	Drop     string // regular expression of the names to drop
	Scale    bool
	V2       bool
}

// scraped is a target with labels that identify it, like those that discovery
// would add.
type scraped struct {
	Address string
	Labels  map[string]string
}

func newJob(s Scenario, dir, sinkURL string, addresses []string) job {
	j := job{
		Dir: dir, SinkURL: sinkURL, Interval: seconds(s.Interval), Timeout: seconds(s.Interval),
		Relabel: s.Drop != "", Drop: s.Drop, Scale: s.Scale, V2: s.V2,
	}
	for i, a := range addresses {
		j.Targets = append(j.Targets, scraped{Address: a, Labels: map[string]string{
			"cluster":   "eu-central-1",
			"namespace": fmt.Sprintf("team-%d", i%7),
			"pod":       fmt.Sprintf("orders-7d9fc6b5c8-%05d", i),
		}})
	}
	return j
}

func seconds(d time.Duration) string { return fmt.Sprintf("%ds", d/time.Second) }

// prepare writes the files of the collector into dir and returns its command
// line. j is the data for the templates.
func (c *Collector) prepare(dir string, j any) (*exec.Cmd, error) {
	err := fs.WalkDir(c.files, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || p == "collector.json" {
			return err
		}
		text, err := fs.ReadFile(c.files, p)
		if err != nil {
			return err
		}
		out, err := expand(p, string(text), j)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(p))
		return errors.Join(os.MkdirAll(filepath.Dir(to), 0o777), os.WriteFile(to, []byte(out), 0o666))
	})
	if err != nil {
		return nil, fmt.Errorf("cannot write the config of %s: %w", c.Name, err)
	}
	cmd := exec.Command(c.program)
	cmd.Dir = dir
	for _, a := range c.spec.Args {
		out, err := expand("args", a, j)
		if err != nil {
			return nil, fmt.Errorf("cannot write the command line of %s: %w", c.Name, err)
		}
		cmd.Args = append(cmd.Args, out)
	}
	return cmd, nil
}

func expand(name, text string, j any) (string, error) {
	t, err := template.New(name).Option("missingkey=error").Parse(text)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, j)
	return b.String(), err
}
