package scripting

// openSink makes what a component has because it is a sink.
func (c *Component) openSink(arguments) {}
