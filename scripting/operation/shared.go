package operation

// The operations of which more is to be said than one call of engine/view.

// Filter drops the rows for which the function that is argument 1 returns false.
// It gets the fields that argument 0 names.
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

// MapLabel sets the label that argument 0 names to what the function that is
// argument 1 returns for its value.
func MapLabel(c *Call) error {
	name, fn := c.Text(0), c.Func(1)
	return c.Window.MapLabel(fn.Site(), name, func(value string) (string, bool, error) {
		to, ok := fn.MapLabel(name, value)
		return to, !ok, nil
	})
}

// MapValue sets values to what the function that is argument 0 returns for them.
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

// ListRows results in an iterator over the rows and the fields that argument 0
// names.
func ListRows(c *Call) error { return c.overFields(RowList, "", 0) }

// ListGroups results in an iterator over the groups by the fields that argument
// 0 names.
func ListGroups(c *Call) error { return c.overFields(GroupList, "", 0) }

// EachJSON calls the function that is argument 1 with what is at the paths of
// argument 0 in each line, read as JSON.
func EachJSON(c *Call) error { return c.overFields(EachFields, "json", 0) }

// EachLogfmt is EachJSON for lines in logfmt.
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
