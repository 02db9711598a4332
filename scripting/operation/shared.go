package operation

// Operations that need more than one call of engine/view.

// Filter drops the rows for which the function in argument 1 returns false. The
// function gets the fields named by argument 0.
func Filter(c *Call) error {
	f, err := c.fields("", 0)
	if err != nil {
		return err
	}
	m, fn := c.Window, c.Func(1)
	for i := m.Next(0); i >= 0; i = m.Next(i + 1) {
		if f.Judged && !c.Metrics.Judged(i) {
			continue
		}
		if !fn.Keeps(&f, i) {
			m.Drop(i)
		}
	}
	return nil
}

// MapLabel sets the label named by argument 0 to the result of the function in
// argument 1 for its value.
func MapLabel(c *Call) error {
	name, fn := c.Text(0), c.Func(1)
	return c.Window.MapLabel(fn.Site(), name, func(value string) (string, bool, error) {
		to, ok := fn.MapLabel(name, value)
		return to, !ok, nil
	})
}

// MapValue sets values to the results of the function in argument 0.
func MapValue(c *Call) error {
	m, fn := c.Metrics, c.Func(0)
	for i := m.Next(0); i >= 0; i = m.Next(i + 1) {
		if !m.Judged(i) {
			continue
		}
		f, _ := m.Value(i)
		if f, ok := fn.MapNumber(f); ok {
			if err := m.SetValue(i, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// ListRows returns an iterator over the rows with the fields named by argument
// 0.
func ListRows(c *Call) error { return c.overFields(RowList, "", 0) }

// ListGroups returns an iterator over the groups by the fields named by
// argument 0.
func ListGroups(c *Call) error { return c.overFields(GroupList, "", 0) }

// EachJSON calls the function in argument 1 for each line, parsed as JSON, with
// the values at the paths in argument 0.
func EachJSON(c *Call) error { return c.overFields(EachFields, "json", 0) }

// EachLogfmt is like EachJSON, for lines in logfmt.
func EachLogfmt(c *Call) error { return c.overFields(EachFields, "logfmt", 0) }

func (c *Call) overFields(r Result, format string, arg int) (err error) {
	c.Fields, err = c.fields(format, arg)
	c.Result = r
	return err
}

// DropGroup drops the records of the group.
func DropGroup(c *Call) error {
	for _, row := range c.Group {
		c.Window.Drop(row)
	}
	return nil
}
