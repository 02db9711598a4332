package remotewrite

import "net/http"

// UseShards makes the first endpoint use n shards.
func (c *Component) UseShards(n int) { c.endpoints.Current()[0].shards.setCount(n) }

// SetTransport makes the first endpoint send through rt. Call it before Run.
func (c *Component) SetTransport(rt http.RoundTripper) {
	c.endpoints.Current()[0].settings.Load().Client = &http.Client{Transport: rt}
}
