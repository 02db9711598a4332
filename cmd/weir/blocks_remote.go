package main

import (
	"maps"
	"strings"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/natives"
)

// content describes the content of a remote import.
const content = `The content is a package, modules or scripts. A package has the file weir-package.toml, with modules in its folder modules and scripts in its folder scripts. In other content, the *.alloy files at the top are modules, and the other files are scripts. The label is the namespace of both, as for import.file and import.scripts.

weir runs only content whose digest is in weir.lock, next to the config; 'weir pkg lock' fetches it and writes the entry. Content is cached in --storage.path, so that weir starts and runs without the network. If the source gets other content, the health of the block reports both digests, and the locked content keeps running; with --lock=update, weir accepts the new content. When weir.lock changes, weir reloads the nodes concerned, with their tests.`

// remoteBlocks describes the blocks that import content over the network.
func remoteBlocks() []component.Registration {
	web := map[string]string{
		"url":            "URL of the content: a tar, tar.gz or zip file, or a single module.",
		"path":           "The file or folder in the archive to import. Without it, the whole archive is imported.",
		"poll_frequency": "Interval between two looks for other content; 0s looks never.",
		"poll_timeout":   "Timeout of a request.",
		"method":         "HTTP method of the request.",
		"headers":        "Headers to add to the request; they take precedence over the headers of the client.",
		"body":           "Body of the request.",
	}
	for _, r := range natives.All() {
		if r.Name == "remote.http" { // it has the same block
			maps.Copy(web, maps.Collect(func(yield func(string, string) bool) {
				for name, doc := range r.Doc.Args {
					if (name == "client" || strings.HasPrefix(name, "client.")) && !yield(name, doc) {
						return
					}
				}
			}))
		}
	}
	web["client.follow_redirects"] = "Whether redirects are followed. weir follows them only within the scheme, host and port of the URL."
	password := map[string]string{
		"basic_auth":          "User name and password to send with each request.",
		"basic_auth.username": "User name.",
		"basic_auth.password": "Password.",
	}
	git := map[string]string{
		"repository":          "URL of the repository: https://, ssh:// or git@host:path.",
		"revision":            "Branch, tag or commit with all its digits.",
		"path":                "The file or folder in the repository to import. Without it, the whole repository is imported.",
		"pull_frequency":      "Interval between two looks for other content; 0s looks never.",
		"ssh_key":             "Key to log in with over SSH.",
		"ssh_key.username":    "User name.",
		"ssh_key.key":         "Private key, as PEM text.",
		"ssh_key.key_file":    "File with the private key.",
		"ssh_key.passphrase":  "Passphrase of the private key.",
		"ssh_key.known_hosts": "File with the keys of hosts, in OpenSSH's format. Without it, the known_hosts files of the user and of the system are used.",
	}
	maps.Copy(git, password)
	oci := map[string]string{
		"repository":     "Registry and name of the repository, such as registry.example.com/acme/http.",
		"tag":            "Tag of the artifact. One of tag and digest is required.",
		"digest":         "Digest of the manifest of the artifact.",
		"path":           "The file or folder in the artifact to import. Without it, the whole artifact is imported.",
		"poll_frequency": "Interval between two looks for other content; 0s looks never.",
		"plain_http":     "Whether the registry is accessed without TLS.",
	}
	maps.Copy(oci, password)
	return []component.Registration{
		{
			Name:    "import.git",
			NewArgs: func() any { a := &config.ImportGit{}; a.SetToDefault(); return a },
			Doc: component.Doc{
				Summary: "Imports modules and scripts from a Git repository.\n\n" + content,
				Args:    git,
				Example: `
import.git "acme" {
  repository = "https://git.example.com/acme/weir.git"
  revision   = "v1.2.0"
  path       = "packages/http"
}

acme.http.paths "default" {
  forward_to = [prometheus.echo.default.receiver]
}

prometheus.echo "default" { }`,
			},
		},
		{
			Name:    "import.http",
			NewArgs: func() any { a := &config.ImportHTTP{}; a.SetToDefault(); return a },
			Doc: component.Doc{
				Summary: "Imports modules and scripts from an HTTP server: an archive, or a single module.\n\n" + content,
				Args:    web,
				Example: `
import.http "acme" {
  url = "https://packages.example.com/acme-http-1.2.0.tar.gz"
}

acme.http.paths "default" {
  forward_to = [prometheus.echo.default.receiver]
}

prometheus.echo "default" { }`,
			},
		},
		{
			Name:    "import.oci",
			NewArgs: func() any { a := &config.ImportOCI{}; a.SetToDefault(); return a },
			Doc: component.Doc{
				Summary: "Imports modules and scripts from an artifact in an OCI registry. Its layers are archives, or single files with the annotation org.opencontainers.image.title.\n\n" + content,
				Args:    oci,
				Example: `
import.oci "acme" {
  repository = "registry.example.com/acme/http"
  tag        = "1.2.0"
}

acme.http.paths "default" {
  forward_to = [prometheus.echo.default.receiver]
}

prometheus.echo "default" { }`,
			},
		},
	}
}
