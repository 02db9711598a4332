package http

import nethttp "net/http"

// TCPHandler is what connections over TCP meet.
func (s *Service) TCPHandler() nethttp.Handler { return s.serve(overTCP) }

// Routes are the patterns of the service's own routes.
func (s *Service) Routes() (patterns []string) {
	for _, rt := range s.table() {
		patterns = append(patterns, rt.pattern)
	}
	return patterns
}

// PageText is the page's template.
var PageText = pageText
