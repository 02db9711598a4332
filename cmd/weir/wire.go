package main

import (
	"cmp"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/docs"
	auditlog "github.com/weir-run/weir/engine/audit"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	nodehistory "github.com/weir-run/weir/engine/history"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/service/http"
	"github.com/weir-run/weir/engine/service/telemetry"
	uiservice "github.com/weir-run/weir/engine/service/ui"
	"github.com/weir-run/weir/natives"
	"github.com/weir-run/weir/plugin/host"
	"github.com/weir-run/weir/scripting"
	scripthost "github.com/weir-run/weir/scripting/host"
	"github.com/weir-run/weir/scripting/js"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/scripting/versions"
	"github.com/weir-run/weir/scripts"
	"github.com/weir-run/weir/stdlib"
	"github.com/weir-run/weir/ui"
)

// languages are the languages of scripts.
func languages() []scripting.Language { return []scripting.Language{lua.New(), js.New()} }

// scriptsUse configures how a command uses scripts. The zero value only loads
// them.
type scriptsUse struct {
	log       *slog.Logger
	checks    *registry.Checks                          // nil: only the checks that loading a script needs
	versions  *versions.Store                           // nil: scripts have no history
	lastGood  bool                                      // whether it replaces a script that cannot be used
	untested  bool                                      // versions run without tests
	testLimit time.Duration                             // of these tests; 0: scripttest.DefaultReloadLimit
	compilers *registry.Compilers                       // nil: each folder has its own
	lookupEnv func(name string) (value string, ok bool) // nil: os.LookupEnv
}

// options returns the common options of all folders of scripts.
func (u scriptsUse) options(dir string) registry.Options {
	langs := languages()
	o := registry.Options{
		Languages: langs,
		UserDir:   dir,
		Modules:   stdlib.Modules(),
		Outside:   scripthost.Outside{LookupEnv: u.lookupEnv},
		Checks:    u.checks,
		Compilers: u.compilers,
		Logger:    u.log,
		Versions:  u.versions,
		LastGood:  u.lastGood,
	}
	if u.lookupEnv == nil {
		o.Outside.LookupEnv = os.LookupEnv
	}
	pipelines, limit := pipelines(), cmp.Or(u.testLimit, scripttest.DefaultReloadLimit)
	o.Report = scripttest.OnRequest(langs, o.Modules, pipelines, limit)
	if !u.untested {
		o.Test = scripttest.OnReload(langs, o.Modules, pipelines, limit)
	}
	return o
}

// pipelines returns what tests of whole configs need.
func pipelines() *scripttest.Pipelines {
	p := &scripttest.Pipelines{Natives: component.NewList(natives.All()...), Unsupported: unsupported()}
	if s, err := newServices(port{}, "", io.Discard); err == nil { // the format is valid
		for _, s := range s.all() {
			p.Services = append(p.Services, s.Definition())
		}
	}
	return p
}

// imported creates the catalog of another folder of scripts: in the namespace of an
// import.scripts block or, if that is "", with the scripts that ship with weir.
func (u scriptsUse) imported(namespace, dir string) (component.Catalog, error) {
	o := u.options(dir)
	if o.Namespace = namespace; namespace == "" {
		o.Embedded = scripts.FS
	}
	return registry.NewCatalog(o)
}

// catalogs returns the catalogs that resolve a block name: natives, the scripts
// of the folder, the scripts that ship with weir, and plugins. closePlugins must be
// called when they are no longer used.
func (u scriptsUse) catalogs(scriptsDir string) ([]component.Catalog, error) {
	scripted, err := u.imported("", scriptsDir)
	if err != nil {
		return nil, err
	}
	return []component.Catalog{component.NewList(natives.All()...), scripted, newPlugins(scriptsDir, u.log)}, nil
}

// newPlugins returns the catalog of the plugins in the folder plugins next to the scripts,
// and next to the binary.
func newPlugins(scriptsDir string, log *slog.Logger) *host.Catalog {
	dirs := []string{filepath.Join(filepath.Dir(scriptsDir), "plugins")}
	if exe, err := os.Executable(); err == nil {
		dirs = append(dirs, filepath.Dir(exe))
	}
	return host.New(host.Options{Dirs: dirs, Env: pluginEnv(os.Environ()), Logger: log})
}

// closePlugins ends the processes of plugins.
func closePlugins(catalogs []component.Catalog) {
	for _, c := range catalogs {
		if p, ok := c.(*host.Catalog); ok {
			p.Close()
		}
	}
}

// inherited are the environment variables of weir that plugins get. Everything else may
// be a secret.
var inherited = []string{
	"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"GODEBUG", "GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GORACE", "GOCOVERDIR",
	"SystemRoot", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "ProgramData", "PATHEXT", "COMSPEC",
}

// pluginEnv returns the part of an environment that plugins get.
func pluginEnv(all []string) (env []string) {
	for _, v := range all {
		if name, _, _ := strings.Cut(v, "="); slices.Contains(inherited, name) {
			env = append(env, v)
		}
	}
	return env
}

// services are the parts of weir that exist once: the HTTP port, logs, metrics, the
// history of nodes and the audit log.
type services struct {
	http      *http.Service
	telemetry *telemetry.Service
	ui        *uiservice.Service
	history   *nodehistory.Recorder
	audit     *auditlog.Log
}

// port are the options of weir's own port. Without an address, weir does not listen.
type port struct {
	listen   string
	catalogs func() []component.Catalog // in which a config finds its components; nil: it has none
	check    checker                    // of the config on disk
	api      *commandAPI                // nil: the routes of commands are not served
}

// newServices returns the services. logFormat overrides the format in the config.
func newServices(p port, logFormat string, log io.Writer) (*services, error) {
	t, err := telemetry.New(telemetry.Options{Output: log, Format: logFormat})
	if err != nil {
		return nil, err
	}
	if p.catalogs == nil {
		p.catalogs = func() []component.Catalog { return nil }
	}
	requests := auditlog.New(t.Logger())
	recorder := nodehistory.New(clock.System{})
	allowed := new(uiservice.Service)
	s := &services{telemetry: t, ui: allowed, history: recorder, audit: requests, http: http.New(http.Options{
		Routes: p.api.routes(),
		Listen: p.listen, UI: ui.Files(), Docs: documentation(), Manual: manuals(p.catalogs), Completions: completions(p.catalogs), Check: p.check, Document: docs.OpenAPI(), History: recorder, Audit: requests,
		Allowed: allowed.Allowed, Gatherer: t.Gatherer(), Registerer: t.Registerer(), Logger: t.Logger(), Log: t.Recent,
	})}
	if p.api != nil {
		p.api.handler = s.http.Handler()
	}
	return s, nil
}

func (s *services) all() []service.Service { return []service.Service{s.telemetry, s.ui, s.http} }
