package operation

// Cost is what a call is charged before it runs.
type Cost uint8

// The costs.
const (
	Free      Cost = iota // charged elsewhere, such as for the calls of a function
	Rows                  // goes over the rows
	Lines                 // goes over the rows, and over the lines if it is on log lines
	BatchText             // writes the batch as text
	Record                // copies a record
	Line                  // reads the line of a record
	OwnLine               // copies a record with its line
)

// Price is a cost in the units of the limits.
type Price struct {
	Instructions int64
	// Native is how many bytes Go code reads at a stretch, -1 if it does not take
	// long.
	Native int
	// Made is how many bytes of text are made, -1 for none.
	Made int64
}

// Price returns what the cost is for c.
func (k Cost) Price(c *Call) Price {
	if k == Line { // the one that is asked for many times in a batch
		return Price{Instructions: int64(len(c.Logs.Line(c.Record)) >> 7), Native: -1, Made: -1}
	}
	return k.price(c)
}

func (k Cost) price(c *Call) Price {
	switch k {
	case Rows, Lines:
		// About 5 ns a row, a tenth of an instruction.
		p := Price{Instructions: int64(c.Window.Len()/8) + 1, Made: -1}
		if k == Lines && c.Logs != nil {
			p.Native = c.Logs.Batch().Bytes()
			p.Instructions = int64(c.Window.Len()/8+p.Native>>8) + 1
		}
		return p
	case BatchText:
		return Price{Instructions: int64(c.Window.Len()) * 10, Native: -1, Made: -1}
	case Record:
		return Price{Instructions: 20, Native: -1, Made: -1}
	case OwnLine:
		return Price{Instructions: 20, Native: -1, Made: int64(len(c.Logs.Line(c.Record)))}
	}
	return Price{Native: -1, Made: -1}
}
