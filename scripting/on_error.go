package scripting

import (
	"fmt"
	"slices"
)

// OnError specifies what happens to data if a hook fails.
type OnError string

// UnmarshalText accepts the valid values.
func (o *OnError) UnmarshalText(text []byte) error {
	supported := []string{"pass", "drop", "quarantine", "hold"}
	if !slices.Contains(supported, string(text)) {
		return fmt.Errorf("cannot use on_error = %q: it must be %s", text, quoteList(supported))
	}
	*o = OnError(text)
	return nil
}

// Stores reports whether data on which the script fails may go to the
// quarantine.
func (o OnError) Stores() bool { return o == OnErrorQuarantine || o == OnErrorHold }

// The values of on_error.
const (
	OnErrorPass       OnError = "pass"
	OnErrorDrop       OnError = "drop"
	OnErrorQuarantine OnError = "quarantine"
	OnErrorHold       OnError = "hold"
)

// DefaultOnError returns the default of on_error in the block.
func (d *Definition) DefaultOnError() OnError {
	if d.ifFails != "" {
		return d.ifFails
	}
	switch d.Kind {
	case Source: // for data that a hook emitted before it failed
		return OnErrorDrop
	case Sink:
		return OnErrorHold
	}
	return OnErrorPass
}

// defineOnError reads the key on_error.
func defineOnError(d *definer, field RawField) {
	o, _ := field.Value.(string)
	may := []string{"pass", "drop", "quarantine", "hold"}
	if d.def.Kind == Sink {
		may = may[1:] // it does not forward data
	}
	if !slices.Contains(may, o) {
		d.fail(field.Line, "cannot use %s as %s: it must be %s", describe(field.Value), field.Name, quoteList(may))
		return
	}
	d.def.ifFails = OnError(o)
}
