package main

import (
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/api"
	"github.com/weir-run/weir/engine/service/http"
	"github.com/weir-run/weir/scripting/node"
)

// apiText introduces the API in its OpenAPI document and in the reference.
const apiText = "The HTTP API of weir, over the control socket and the TCP port. " +
	"[Operating weir](../operating.md#the-web-ui-and-the-api) describes who may use it. " +
	"A response with a status of 400 or more is plain text; if the request has `Accept: application/json`, it is an [Error](#error). " +
	"Fields may be added to objects; clients must ignore the fields that they do not know."

// apiRoutes returns the descriptions of all routes of weir.
func apiRoutes() []api.Route {
	routes := http.Routes()
	for _, r := range new(commandAPI).routes() {
		routes = append(routes, r.Route)
	}
	for _, r := range node.ControlRoutes() {
		method, path := r.Split()
		r.Pattern = method + " /api/v0/control/{node}" + path
		routes = append(routes, r)
	}
	slices.SortStableFunc(routes, func(a, b api.Route) int {
		_, p := a.Split()
		_, q := b.Split()
		return strings.Compare(p, q)
	})
	return routes
}
