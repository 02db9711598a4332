// Package watch reports which files changed: the config, the scripts, the files
// that components read. Only this package imports fsnotify.
//
// Events of the operating system are only hints. Changes are found by comparing
// files. A change is a change of content (by hash) that still exists after 20
// ms without events, or after at most 200 ms. Therefore, a save is one change
// however the editor does it, and saving the same content is not a change.
// Directories are watched, not files, and every symbolic link on the path, so
// that a rename, a replaced link and a directory that appears later are all
// detected. Where events are unavailable (limits of the system), or incomplete
// (network file systems), files are checked every second, and read only if
// their time, size or identity changed.
//
// In a directory, names that begin with a dot or end with a tilde are ignored. Their
// events only show that a save is not complete.
package watch
