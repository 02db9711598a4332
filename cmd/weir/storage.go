package main

import (
	"github.com/spf13/pflag"

	"github.com/weir-run/weir/engine/storage"
)

// storageFlag adds the flag --storage.path, which has the same name, default and
// errors in every command.
func storageFlag(f *pflag.FlagSet, dir *string) {
	f.StringVar(dir, "storage.path", defaultStorage, "storage directory of weir: journals, positions, state")
}

// checkStorage returns an error with exit code 2 unless a weir runs or has run
// with the storage directory.
func checkStorage(dir string) error { return cannotStart(storage.Check(dir)) }
