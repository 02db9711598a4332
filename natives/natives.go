// Package natives lists the components in Go. The path of a package below this
// one is the name of its block: natives/prometheus/scrape is prometheus.scrape.
//
// Only commands and tests import this package. No component imports another;
// code that a family shares is in the internal folder of the family.
package natives

import (
	"github.com/weir-run/weir/engine/component"
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
	localfile "github.com/weir-run/weir/natives/local/file"
	localfilematch "github.com/weir-run/weir/natives/local/file_match"
	localtemplate "github.com/weir-run/weir/natives/local/template"
	lokiecho "github.com/weir-run/weir/natives/loki/echo"
	lokienrich "github.com/weir-run/weir/natives/loki/enrich"
	lokiprocess "github.com/weir-run/weir/natives/loki/process"
	lokirelabel "github.com/weir-run/weir/natives/loki/relabel"
	lokisecretfilter "github.com/weir-run/weir/natives/loki/secretfilter"
	lokisourceapi "github.com/weir-run/weir/natives/loki/source/api"
	lokisourcefile "github.com/weir-run/weir/natives/loki/source/file"
	lokisourcejournal "github.com/weir-run/weir/natives/loki/source/journal"
	lokisourcesyslog "github.com/weir-run/weir/natives/loki/source/syslog"
	lokiwrite "github.com/weir-run/weir/natives/loki/write"
	prometheusecho "github.com/weir-run/weir/natives/prometheus/echo"
	prometheusenrich "github.com/weir-run/weir/natives/prometheus/enrich"
	prometheusexporterself "github.com/weir-run/weir/natives/prometheus/exporter/self"
	prometheusexporterstatic "github.com/weir-run/weir/natives/prometheus/exporter/static"
	prometheusexporterunix "github.com/weir-run/weir/natives/prometheus/exporter/unix"
	prometheusreceivehttp "github.com/weir-run/weir/natives/prometheus/receive_http"
	prometheusrelabel "github.com/weir-run/weir/natives/prometheus/relabel"
	prometheusremotewrite "github.com/weir-run/weir/natives/prometheus/remote_write"
	prometheusscrape "github.com/weir-run/weir/natives/prometheus/scrape"
	remoteconsul "github.com/weir-run/weir/natives/remote/consul"
	remoteetcd "github.com/weir-run/weir/natives/remote/etcd"
	remotehttp "github.com/weir-run/weir/natives/remote/http"
	remoteredis "github.com/weir-run/weir/natives/remote/redis"
	remotezookeeper "github.com/weir-run/weir/natives/remote/zookeeper"
)

// All returns the registrations of all native components, with their manuals,
// sorted by name. A component that is not in this list is not part of weir.
func All() []component.Registration {
	all := []component.Registration{
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
		localfile.Registration(),
		localfilematch.Registration(),
		localtemplate.Registration(),
		lokiecho.Registration(),
		lokienrich.Registration(),
		lokiprocess.Registration(),
		lokirelabel.Registration(),
		lokisecretfilter.Registration(),
		lokisourceapi.Registration(),
		lokisourcefile.Registration(),
		lokisourcejournal.Registration(),
		lokisourcesyslog.Registration(),
		lokiwrite.Registration(),
		prometheusecho.Registration(),
		prometheusenrich.Registration(),
		prometheusexporterself.Registration(),
		prometheusexporterstatic.Registration(),
		prometheusexporterunix.Registration(),
		prometheusreceivehttp.Registration(),
		prometheusrelabel.Registration(),
		prometheusremotewrite.Registration(),
		prometheusscrape.Registration(),
		remoteconsul.Registration(),
		remoteetcd.Registration(),
		remotehttp.Registration(),
		remoteredis.Registration(),
		remotezookeeper.Registration(),
	}
	for i, r := range all {
		all[i] = docs.Of(r)
	}
	return all
}
