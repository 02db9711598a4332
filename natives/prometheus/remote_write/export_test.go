package remotewrite

// UseLanes makes the first endpoint use n lanes.
func (c *Component) UseLanes(n int) { c.endpoints.Current()[0].lanes.use(n) }
