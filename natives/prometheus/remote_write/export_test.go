package remotewrite

import "net/http"

// UseLanes makes the first endpoint use n lanes.
func (c *Component) UseLanes(n int) { c.endpoints.Current()[0].lanes.use(n) }

// SetTransport makes the first endpoint send by rt. Call it before Run.
func (c *Component) SetTransport(rt http.RoundTripper) {
	c.endpoints.Current()[0].settings.Load().Client = &http.Client{Transport: rt}
}
