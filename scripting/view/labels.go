package view

import (
	"fmt"
	"unicode/utf8"

	"github.com/weir-run/weir/engine/batch"
)

// checkLabelName checks the name of a label; logs says that it is of a stream.
func checkLabelName(name string, logs bool) error {
	switch {
	case name == "":
		return fmt.Errorf("cannot use an empty label name")
	case name == batch.NameLabel && !logs:
		return fmt.Errorf("cannot use %s as a label: it is the record's name", batch.NameLabel)
	case !utf8.ValidString(name):
		return fmt.Errorf("cannot use label name %q: it is not valid UTF-8", name)
	}
	return nil
}

func checkLabelValue(name, value string) error {
	if !utf8.ValidString(value) {
		return fmt.Errorf("cannot set label %q to %q: it is not valid UTF-8", name, value)
	}
	return nil
}

func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("cannot use an empty name: drop the record instead")
	case !utf8.ValidString(name):
		return fmt.Errorf("cannot use name %q: it is not valid UTF-8", name)
	}
	return nil
}
