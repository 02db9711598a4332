package operation

// Cost is the amount that a call is charged before it runs.
type Cost uint8

// The costs.
const (
	Free      Cost = iota // charged elsewhere, for example for calls of a function
	Rows                  // iterates over the rows
	Lines                 // iterates over the rows, and over the lines of log lines
	BatchText             // writes the batch as text
	Record                // copies a record
	Line                  // reads the line of a record
	OwnLine               // copies a record with its line
)

// Price is a cost in the units of the limits.
type Price struct {
	Instructions int64
	// Native is the number of bytes that Go code processes without a check, or -1
	// if it does not take long.
	Native int
	// Made is the number of bytes of created text, or -1 if there is none.
	Made int64
}

// Price returns the price of the cost for c.
func (k Cost) Price(c *Call) Price {
	if k == Line { // called many times per batch
		return Price{Instructions: int64(len(c.Logs.Line(c.Record)) >> 7), Native: -1, Made: -1}
	}
	return k.price(c)
}

func (k Cost) price(c *Call) Price {
	switch k {
	case Rows, Lines:
		// About 5 ns per row, a tenth of an instruction.
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
