package process

import (
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/oschwald/maxminddb-golang"

	"github.com/weir-run/weir/engine/files"
)

// geoFiles are the databases that the stages of a node use, by path.
type geoFiles struct {
	mu  sync.Mutex
	all map[string]*geoDB
}

// geoDB is a database in memory. The file is not mapped: if a mapped file were
// truncated, a read would crash the process.
type geoDB struct {
	*maxminddb.Reader
	path string
	fileStamp
}

// fileStamp identifies a version of a file.
type fileStamp struct {
	size     int64
	modified time.Time
}

// maxDatabase is the maximum size of a database, in bytes, because it is kept in
// memory.
const maxDatabase = 1 << 30

func stampOf(path string) (fileStamp, error) {
	i, err := files.Stat(path)
	if err != nil {
		return fileStamp{}, err
	}
	return fileStamp{i.Size(), i.ModTime()}, nil
}

// open returns the database with the current content of the file.
func (g *geoFiles) open(path string) (*geoDB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("cannot find the database %q: %w", path, err)
	}
	stamp, err := stampOf(path)
	if err != nil {
		return nil, fmt.Errorf("cannot find the database: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if db := g.all[path]; db != nil && db.fileStamp == stamp {
		return db, nil
	}
	text, err := files.Read(path, maxDatabase)
	if err != nil {
		return nil, fmt.Errorf("cannot read the database: %w", err)
	}
	r, err := maxminddb.FromBytes(text)
	if err != nil {
		return nil, fmt.Errorf("cannot use the database %q: %w", path, err)
	}
	db := &geoDB{r, path, stamp}
	if g.all == nil {
		g.all = map[string]*geoDB{}
	}
	g.all[path] = db
	return db, nil
}

// retainOnly removes all databases except dbs.
func (g *geoFiles) retainOnly(dbs []*geoDB) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = map[string]*geoDB{}
	for _, db := range dbs {
		g.all[db.path] = db
	}
}

// changed reports whether the file has changed since it was read. A file that was
// removed has not changed: the database in memory stays in use.
func (db *geoDB) changed() bool {
	now, err := stampOf(db.path)
	return err == nil && now != db.fileStamp
}
