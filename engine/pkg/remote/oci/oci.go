// Package oci fetches artifacts from OCI registries.
//
// The layers of an artifact are archives (tar, tar.gz or zip), whose files form the
// content together, or single files with the annotation
// org.opencontainers.image.title, as oras push writes them. Registries and clients
// verify the digests of the manifest and of all layers.
package oci

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	registry "oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/weir-run/weir/engine/httpclient"
	"github.com/weir-run/weir/engine/pkg"
	"github.com/weir-run/weir/engine/pkg/remote"
)

// Fetcher is the remote.Fetcher of OCI registries.
type Fetcher struct{}

var _ remote.Fetcher = Fetcher{}

// Limits of what a registry sends.
const (
	maxManifest = 4 << 20 // bytes
	maxLayers   = 1000
	maxPages    = 1000 // of tags
)

// Repository returns the client for the repository of a source. close closes its idle
// connections.
func Repository(s remote.Source, a remote.Access) (r *registry.Repository, close func(), err error) {
	if r, err = registry.NewRepository(s.URL); err != nil {
		return nil, nil, err
	}
	client, err := a.HTTPClient()
	if err != nil {
		return nil, nil, err
	}
	if client.CheckRedirect != nil {
		client.CheckRedirect = redirect
	}
	r.PlainHTTP, r.TagListMaxPages = a.PlainHTTP, maxPages
	r.Client = &auth.Client{
		Client: client,
		Cache:  auth.NewCache(),
		Credential: auth.StaticCredential(r.Reference.Host(), auth.Credential{
			Username: a.Username, Password: string(a.Password),
		}),
	}
	return r, client.CloseIdleConnections, nil
}

// redirect allows redirects of layers to another host, because registries keep them in
// other storage, and their digests are known. Credentials are not sent there.
func redirect(req *http.Request, via []*http.Request) error {
	if isBlob(via[0].URL) && (via[0].Method == http.MethodGet || via[0].Method == http.MethodHead) {
		return httpclient.CheckRedirect(req, via)
	}
	return remote.SameHost(req, via)
}

func isBlob(u *url.URL) bool { return bytes.Contains([]byte(u.Path), []byte("/blobs/sha256:")) }

// Versions lists the tags of the repository.
func (Fetcher) Versions(ctx context.Context, s remote.Source, a remote.Access) (tags []string, err error) {
	r, done, err := Repository(s, a)
	if err != nil {
		return nil, err
	}
	defer done()
	err = r.Tags(ctx, "", func(page []string) error {
		tags = append(tags, page...)
		return nil
	})
	return tags, explain(err)
}

// Fetch adds the files of an artifact, and returns the digest of its manifest.
func (Fetcher) Fetch(ctx context.Context, s remote.Source, a remote.Access, files *remote.Files) (string, error) {
	r, done, err := Repository(s, a)
	if err != nil {
		return "", err
	}
	defer done()
	desc, err := r.Resolve(ctx, s.Revision)
	if err != nil {
		return "", explain(err)
	}
	if desc.Size > maxManifest {
		return "", fmt.Errorf("the manifest has more than %d MiB", maxManifest>>20)
	}
	b, err := content.FetchAll(ctx, r, desc) // verifies the digest
	if err != nil {
		return "", mismatch("manifest", desc, err)
	}
	var m v1.Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return "", fmt.Errorf("cannot parse the manifest: %w", err)
	}
	switch {
	case len(m.Layers) == 0:
		return "", fmt.Errorf("%s is not an artifact with layers; its type is %q", desc.Digest, cmp.Or(m.MediaType, desc.MediaType))
	case len(m.Layers) > maxLayers:
		return "", fmt.Errorf("the artifact has more than %d layers", maxLayers)
	}
	for _, layer := range m.Layers {
		if err := add(ctx, r, layer, s.Path, files); err != nil {
			return "", err
		}
	}
	return desc.Digest.String(), nil
}

func add(ctx context.Context, r *registry.Repository, layer v1.Descriptor, sub string, files *remote.Files) error {
	if layer.Size < 0 || layer.Size > pkg.MaxBytes {
		return fmt.Errorf("the layer %s has %d bytes, more than %d MiB", layer.Digest, layer.Size, pkg.MaxBytes>>20)
	}
	b, err := content.FetchAll(ctx, r, layer)
	if err != nil {
		return mismatch("layer", layer, err)
	}
	if ok, err := files.AddArchive(b, sub); ok {
		return err
	}
	title := layer.Annotations[v1.AnnotationTitle]
	if title == "" {
		return fmt.Errorf("the layer %s is no archive and has no name: its type %q must be a tar, tar.gz or zip file, or it needs the annotation %s", layer.Digest, layer.MediaType, v1.AnnotationTitle)
	}
	if name, ok := remote.Below(sub, title); ok {
		return files.Add(name, bytes.NewReader(b))
	}
	return nil
}

// mismatch returns the error of getting content, with the expected digest if it is not
// the content.
func mismatch(what string, want v1.Descriptor, err error) error {
	if errors.Is(err, content.ErrMismatchedDigest) || errors.Is(err, content.ErrTrailingData) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, content.ErrInvalidDescriptorSize) {
		return fmt.Errorf("the registry sends another %s: expected %s with %d bytes: %w", what, want.Digest, want.Size, err)
	}
	return explain(err)
}

// explain returns an error without the URL, which the caller names.
func explain(err error) error {
	if errors.Is(err, auth.ErrBasicCredentialNotFound) {
		return fmt.Errorf("basic_auth is missing: %w", err)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
