package watch

import "github.com/fsnotify/fsnotify"

// FakeNotifier sends the events that a test makes.
type FakeNotifier struct {
	Events chan fsnotify.Event
	Errors chan error
	// AddErr, when it is set, is asked for the error of Add.
	AddErr func(path string) error
	// Added is told of each directory, if it is set.
	Added func(path string)
}

// Add calls Added and returns what AddErr says.
func (f *FakeNotifier) Add(path string) error {
	if f.AddErr != nil {
		if err := f.AddErr(path); err != nil {
			return err
		}
	}
	if f.Added != nil {
		f.Added(path)
	}
	return nil
}

// Remove does nothing.
func (f *FakeNotifier) Remove(string) error { return nil }

// Close does nothing.
func (f *FakeNotifier) Close() error { return nil }

func (f *FakeNotifier) events() <-chan fsnotify.Event { return f.Events }
func (f *FakeNotifier) errors() <-chan error          { return f.Errors }

// Hold keeps w from looking at files until release is called.
func (w *Watcher) Hold() (release func()) {
	w.mu.Lock()
	return w.mu.Unlock
}

// Silent makes w take the directories for which fileSystem returns something
// for such that do not tell of all changes.
func (w *Watcher) Silent(fileSystem func(dir string) string) { w.silent = fileSystem }

// Use makes w get its events from what open returns.
func (w *Watcher) Use(open func() (*FakeNotifier, error)) {
	w.open = func() (notifier, error) {
		n, err := open()
		if err != nil {
			return nil, err
		}
		return n, nil
	}
}
