package scripting

// hookPoll is the hook of a source that is called every interval, and the key of
// its timer.
const hookPoll = "poll"

// openSource makes what a component has because it is a source.
func (c *Component) openSource(a arguments) error {
	if c.script.def.Poll {
		c.beats = append(c.beats, beat{key: hookPoll, interval: a.interval, hook: Hook{Name: hookPoll}, poll: true})
	}
	if len(c.script.def.HTTP) == 0 {
		return nil
	}
	c.openRoutes()
	c.listen = a.listen.server()
	return c.mem.listener.check(c.listen)
}
