package http

import nethttp "net/http"

// TCPHandler is what connections over TCP meet.
func (s *Service) TCPHandler() nethttp.Handler { return s.serve(false) }

// PageText is the page's template.
var PageText = pageText
