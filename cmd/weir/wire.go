package main

import (
	"io"
	"log/slog"
	"os"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/service/http"
	"github.com/weir-run/weir/engine/service/telemetry"
	discoveryconsul "github.com/weir-run/weir/natives/discovery/consul"
	discoverydns "github.com/weir-run/weir/natives/discovery/dns"
	discoverydocker "github.com/weir-run/weir/natives/discovery/docker"
	discoveryfile "github.com/weir-run/weir/natives/discovery/file"
	discoveryhttp "github.com/weir-run/weir/natives/discovery/http"
	discoverykubernetes "github.com/weir-run/weir/natives/discovery/kubernetes"
	discoveryrelabel "github.com/weir-run/weir/natives/discovery/relabel"
	"github.com/weir-run/weir/natives/docs"
	exprfilter "github.com/weir-run/weir/natives/expr/filter"
	exprroute "github.com/weir-run/weir/natives/expr/route"
	exprset "github.com/weir-run/weir/natives/expr/set"
	"github.com/weir-run/weir/natives/local/file"
	filematch "github.com/weir-run/weir/natives/local/file_match"
	lokiecho "github.com/weir-run/weir/natives/loki/echo"
	lokienrich "github.com/weir-run/weir/natives/loki/enrich"
	lokiprocess "github.com/weir-run/weir/natives/loki/process"
	lokirelabel "github.com/weir-run/weir/natives/loki/relabel"
	"github.com/weir-run/weir/natives/loki/secretfilter"
	lokisourceapi "github.com/weir-run/weir/natives/loki/source/api"
	lokisourcefile "github.com/weir-run/weir/natives/loki/source/file"
	lokisourcejournal "github.com/weir-run/weir/natives/loki/source/journal"
	lokisourcesyslog "github.com/weir-run/weir/natives/loki/source/syslog"
	lokiwrite "github.com/weir-run/weir/natives/loki/write"
	"github.com/weir-run/weir/natives/prometheus/echo"
	"github.com/weir-run/weir/natives/prometheus/enrich"
	"github.com/weir-run/weir/natives/prometheus/exporter/self"
	"github.com/weir-run/weir/natives/prometheus/exporter/static"
	"github.com/weir-run/weir/natives/prometheus/exporter/unix"
	receivehttp "github.com/weir-run/weir/natives/prometheus/receive_http"
	"github.com/weir-run/weir/natives/prometheus/relabel"
	remotewrite "github.com/weir-run/weir/natives/prometheus/remote_write"
	"github.com/weir-run/weir/natives/prometheus/scrape"
	remotehttp "github.com/weir-run/weir/natives/remote/http"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/js"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/scripting/versions"
	"github.com/weir-run/weir/scripts"
	"github.com/weir-run/weir/stdlib"
)

// natives are the components in Go. This is the list: what is not here is not
// in weir.
func natives() component.Catalog {
	rs := []component.Registration{
		discoveryconsul.Registration(),
		discoverydns.Registration(),
		discoverydocker.Registration(),
		discoveryfile.Registration(),
		discoveryhttp.Registration(),
		discoverykubernetes.Registration(),
		discoveryrelabel.Registration(),
		exprfilter.Registration(),
		exprroute.Registration(),
		exprset.Registration(),
		file.Registration(),
		filematch.Registration(),
		lokiecho.Registration(),
		lokienrich.Registration(),
		lokiprocess.Registration(),
		lokirelabel.Registration(),
		secretfilter.Registration(),
		lokiwrite.Registration(),
		lokisourceapi.Registration(),
		lokisourcefile.Registration(),
		lokisourcejournal.Registration(),
		lokisourcesyslog.Registration(),
		echo.Registration(),
		enrich.Registration(),
		receivehttp.Registration(),
		relabel.Registration(),
		remotewrite.Registration(),
		remotehttp.Registration(),
		scrape.Registration(),
		self.Registration(),
		static.Registration(),
		unix.Registration(),
	}
	for i := range rs {
		rs[i] = docs.Of(rs[i])
	}
	return component.NewList(rs...)
}

// languages are what scripts may be written in.
func languages() []scripting.Language { return []scripting.Language{lua.New(), js.New()} }

// scriptsUse is what a command does with scripts. The zero value looks at them.
type scriptsUse struct {
	log       *slog.Logger
	checks    *scripting.Checks    // nil: none beyond what loading a script needs
	versions  *versions.Store      // nil: there is no last good version
	untested  bool                 // every version may run
	compilers *scripting.Compilers // nil: each folder has its own
}

// options are what all folders of scripts have in common.
func (u scriptsUse) options(dir string) scripting.Options {
	langs := languages()
	o := scripting.Options{
		Languages: langs,
		UserDir:   dir,
		Modules:   stdlib.Modules(),
		Outside:   scripting.Outside{LookupEnv: os.LookupEnv},
		Checks:    u.checks,
		Compilers: u.compilers,
		Logger:    u.log,
	}
	if !u.untested {
		o.Test, o.Versions = scripttest.OnReload(langs, stdlib.Modules()), u.versions
	}
	return o
}

// imported makes the catalog of an import.scripts: the scripts of another folder,
// in a namespace.
func (u scriptsUse) imported(namespace, dir string) (component.Catalog, error) {
	o := u.options(dir)
	o.Namespace = namespace
	return scripting.NewCatalog(o)
}

// catalogs say what a block name means: a native, or a script of the folder or
// of those that ship with weir.
func (u scriptsUse) catalogs(scriptsDir string) ([]component.Catalog, error) {
	o := u.options(scriptsDir)
	o.Embedded = scripts.FS
	scripted, err := scripting.NewCatalog(o)
	if err != nil {
		return nil, err
	}
	return []component.Catalog{natives(), scripted}, nil
}

// services are the parts of weir that run once: the port, logs and metrics.
type services struct {
	http      *http.Service
	telemetry *telemetry.Service
}

// newServices returns the services. listen is the TCP address, "" for none;
// logFormat wins over the config's.
func newServices(listen, logFormat string, log io.Writer) (*services, error) {
	t, err := telemetry.New(telemetry.Options{Output: log, Format: logFormat})
	if err != nil {
		return nil, err
	}
	return &services{
		telemetry: t,
		http:      http.New(http.Options{Listen: listen, Docs: docsPage, Gatherer: t.Gatherer(), Registerer: t.Registerer(), Logger: t.Logger()}),
	}, nil
}

func (s *services) all() []service.Service { return []service.Service{s.telemetry, s.http} }
