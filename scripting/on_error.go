package scripting

import (
	"fmt"
	"slices"
)

// OnError is what becomes of data whose hook failed.
type OnError string

// UnmarshalText accepts the answers.
func (o *OnError) UnmarshalText(text []byte) error {
	supported := []string{"pass", "drop", "quarantine", "hold"}
	if !slices.Contains(supported, string(text)) {
		return fmt.Errorf("cannot use on_error = %q: it must be %s", text, quoteList(supported))
	}
	*o = OnError(text)
	return nil
}

// Stores reports whether some of what the script fails on goes into quarantine.
func (o OnError) Stores() bool { return o == OnErrorQuarantine || o == OnErrorHold }

// The answers to an error.
const (
	OnErrorPass       OnError = "pass"
	OnErrorDrop       OnError = "drop"
	OnErrorQuarantine OnError = "quarantine"
	OnErrorHold       OnError = "hold"
)

// DefaultOnError is what becomes of data whose hook failed when the block does not say.
func (d *Definition) DefaultOnError() OnError {
	if d.ifFails != "" {
		return d.ifFails
	}
	switch d.Kind {
	case Source: // what a hook made before it failed
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
		may = may[1:] // it passes nothing on
	}
	if !slices.Contains(may, o) {
		d.fail(field.Line, "cannot use %s as %s: it must be %s", describe(field.Value), field.Name, quoteList(may))
		return
	}
	d.def.ifFails = OnError(o)
}
