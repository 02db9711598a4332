// Package watch tells which files changed: the config, the scripts, the files
// that components read. It is the importer of fsnotify.
//
// Events of the operating system are hints that something happened; what
// changed is found by looking. A change is a change of content (by hash) that
// is still there when things have been quiet for 20 ms, or after 200 ms at
// most: so a save is one change however the editor does it, and a save of the
// same content is none. Directories are watched, not files, and every symbolic
// link on the way, so that a rename, a swapped link, a directory that appears
// later are all seen. Where there are no events (limits of the system), or not of
// what others do (network file systems), files are looked at every second, and
// read only when their time, size or identity changed.
//
// In a directory, names that begin with a dot or end with a tilde are not
// looked at.
package watch
