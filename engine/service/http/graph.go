package http

import (
	nethttp "net/http"

	"github.com/weir-run/weir/engine/flowchart"
	"github.com/weir-run/weir/engine/history"
	"github.com/weir-run/weir/engine/service"
)

// serveGraph serves the graph as data.
func (s *Service) serveGraph(host service.Host, w nethttp.ResponseWriter, _ *nethttp.Request) {
	infos, o := host.ListComponents(), host.Overview()
	of := make([]history.Rates, len(infos))
	if s.o.History != nil {
		of = s.o.History.Rates(infos, o.Time)
	}
	rates := map[string]*flowchart.Rates{}
	for k, i := range infos {
		if i.Stats != nil {
			rates[i.ID] = &flowchart.Rates{In: of[k].In, Out: of[k].Out, Dropped: of[k].Dropped, Waiting: i.Backlog.Samples + i.Backlog.Lines}
		}
	}
	writeCompact(w, flowchart.Of(infos, o.Services, func(id string) *flowchart.Rates { return rates[id] }))
}
