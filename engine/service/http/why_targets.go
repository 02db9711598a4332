package http

import (
	"context"
	"fmt"
	nethttp "net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/tap"
)

// whyTargets writes the paths of targets. Its last line is the reason why it ended.
func (s *Service) whyTargets(host service.Host, rw nethttp.ResponseWriter, r *nethttp.Request, o whyOptions) {
	id := r.PathValue("id")
	nodes, dependsOn := targetNodes(host)
	targets := tap.NewTargets(o.where, secretsOf(host), nodes, dependsOn)
	rw.Header().Set("Content-Type", "application/x-ndjson")
	rw.Header().Set("Cache-Control", "no-cache")
	paths := targets.Paths(r.Context(), id, o.limit)
	var text []byte
	for _, p := range paths {
		text = tap.AppendPath(text, p)
	}
	if err := targets.Failure(); err != nil {
		text = tap.AppendPath(text, tap.Path{Kind: "note", Text: fmt.Sprintf("targets for which the expression fails do not match: %v", err)})
	}
	reason := "all targets were examined"
	switch {
	case len(paths) == o.limit:
		reason = "the limit of targets is reached"
	case len(paths) == 0:
		reason = fmt.Sprintf("no discovery and no block has a target that matches; %d targets at %d nodes were examined%s",
			targets.Examined, len(nodes), unhealthyDiscoveries(host))
	}
	text = tap.AppendPath(text, tap.Path{Kind: endOfTap, Text: reason})
	_, _ = rw.Write(text) // the client may be gone
}

// unhealthyDiscoveries tells which discoveries may not have found a target.
func unhealthyDiscoveries(host service.Host) string {
	var b strings.Builder
	for _, i := range host.ListComponents() {
		if len(targetsIn(i.Exports, "targets"))+len(targetsIn(i.Exports, "output")) > 0 || !strings.HasPrefix(i.Name, "discovery.") || i.Health.State == component.Healthy {
			continue
		}
		fmt.Fprintf(&b, "; %s is %s: %s", i.ID, i.Health.State, component.HideURLs(i.Health.Message))
	}
	return b.String()
}

// targetNodes returns the nodes that have targets, and what each node or module depends
// on.
func targetNodes(host service.Host) (nodes []tap.TargetNode, dependsOn map[string][]string) {
	infos := host.ListComponents()
	dependsOn = map[string][]string{}
	modules := map[string]bool{}
	for _, i := range infos {
		dependsOn[i.ID] = i.DependsOn
		for id := i.ID; strings.Contains(id, "/"); {
			id = id[:strings.LastIndexByte(id, '/')]
			modules[id] = true
		}
	}
	for _, i := range infos {
		n := tap.TargetNode{ID: i.ID, Component: i.Name, Position: i.Position, In: targetsIn(i.Arguments, "targets")}
		n.Out = slices.Concat(targetsIn(i.Exports, "targets"), targetsIn(i.Exports, "output"))
		if modules[i.ID] || len(n.In)+len(n.Out) == 0 {
			continue
		}
		if c, ok := host.GetComponent(i.ID); ok {
			n.Explainer, _ = c.(component.TargetExplainer)
		}
		nodes = append(nodes, n)
	}
	return nodes, dependsOn
}

// targetsIn returns the targets in an attribute of arguments or exports.
func targetsIn(v any, attribute string) []tap.Target {
	x := reflect.Indirect(reflect.ValueOf(v))
	if x.Kind() != reflect.Struct {
		return nil
	}
	for i := range x.NumField() {
		name, _, _ := strings.Cut(x.Type().Field(i).Tag.Get("alloy"), ",")
		if name != attribute || !x.Type().Field(i).IsExported() {
			continue
		}
		list, _ := x.Field(i).Interface().([]tap.Target)
		return list
	}
	return nil
}

// failingScrapes names nodes whose scrapes fail: they may be why records are missing.
func failingScrapes(ctx context.Context, host service.Host) string {
	var b strings.Builder
	nodes, _ := targetNodes(host)
	for _, n := range nodes {
		if n.Explainer == nil {
			continue
		}
		down, first := 0, ""
		for _, t := range n.In[:min(len(n.In), maxElements)] {
			if ctx.Err() != nil {
				return ""
			}
			if r := n.Explainer.ExplainTarget(t); r.Result == "down" {
				if down++; first == "" {
					first = r.Reason
				}
			}
		}
		if down > 0 {
			fmt.Fprintf(&b, "; %d of %d targets of %s are down, such as %s", down, len(n.In), n.ID, first)
		}
	}
	return b.String()
}
