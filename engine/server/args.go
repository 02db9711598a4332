package server

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// Arguments are the server's settings.
type Arguments struct {
	// Where and how HTTP is served.
	HTTP HTTP `alloy:"http,block,optional"`
	// Not supported: requests are received over HTTP only.
	GRPC *GRPC `alloy:"grpc,block,optional"`
	// How long requests in flight may take to end when the server stops or
	// moves to another address.
	GracefulShutdownTimeout time.Duration `alloy:"graceful_shutdown_timeout,attr,optional"`
}

// HTTP specifies where and how HTTP is served.
type HTTP struct {
	// Address to listen on; "" is every address of the host.
	ListenAddress string `alloy:"listen_address,attr,optional"`
	// Port to listen on; 0 is one that is free.
	ListenPort int `alloy:"listen_port,attr,optional"`
	// Most connections at a time, further ones wait; 0 is no limit.
	ConnLimit int `alloy:"conn_limit,attr,optional"`
	// How long reading a request may take, its body included; 0s is no limit.
	ReadTimeout time.Duration `alloy:"server_read_timeout,attr,optional"`
	// How long handling a request and writing the answer may take; 0s is no limit.
	WriteTimeout time.Duration `alloy:"server_write_timeout,attr,optional"`
	// How long a connection may wait for its next request; 0s is no limit.
	IdleTimeout time.Duration `alloy:"server_idle_timeout,attr,optional"`
	// TLS; without it HTTP is served in the clear, to which a server that was
	// started with TLS does not go back.
	TLS *TLS `alloy:"tls,block,optional"`
	// HTTP/2, over TLS and, if there is none, in the clear.
	HTTP2 HTTP2 `alloy:"http2,block,optional"`
}

// SetToDefault sets Alloy's defaults, and a limit of connections, of which Alloy has
// none. The config language calls it for the
// block, but not for the squashed arguments around it.
func (h *HTTP) SetToDefault() {
	*h = HTTP{ListenPort: 8080, ConnLimit: 10_000, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute}
	h.HTTP2.SetToDefault()
}

// HTTP2 are the settings of HTTP/2.
type HTTP2 struct {
	// Whether HTTP/2 is spoken.
	Enabled bool `alloy:"enabled,attr,optional"`
	// Refused: connections and streams are limited by conn_limit and
	// max_concurrent_streams.
	MaxHandlers int `alloy:"max_handlers,attr,optional"`
	// Most requests at a time of one connection; 0 is Go's default.
	MaxConcurrentStreams int `alloy:"max_concurrent_streams,attr,optional"`
	// Size of the table with which headers are decoded, in bytes; 0 is Go's default.
	MaxDecoderHeaderTableSize int `alloy:"max_decoder_header_table_size,attr,optional"`
	// Most that the table with which headers are encoded may take, in bytes; 0 is
	// Go's default.
	MaxEncoderHeaderTableSize int `alloy:"max_encoder_header_table_size,attr,optional"`
	// Largest frame to read, in bytes, 16384 to 16777215; 0 is Go's default.
	MaxReadFrameSize int `alloy:"max_read_frame_size,attr,optional"`
	// Whether cipher suites are allowed that HTTP/2 forbids.
	PermitProhibitedCiphers bool `alloy:"permit_prohibited_ciphers,attr,optional"`
	// Refused: server_idle_timeout holds for HTTP/2 too.
	IdleTimeout time.Duration `alloy:"idle_timeout,attr,optional"`
	// Silence after which a ping is sent; 0s is never.
	ReadIdleTimeout time.Duration `alloy:"read_idle_timeout,attr,optional"`
	// How long a ping may stay unanswered before the connection is closed.
	PingTimeout time.Duration `alloy:"ping_timeout,attr,optional"`
	// How long a write may make no progress before the connection is closed; 0s is
	// no limit.
	WriteByteTimeout time.Duration `alloy:"write_byte_timeout,attr,optional"`
	// Bytes that a connection may send ahead, 65535 to 4194304; 0 is Go's default.
	MaxUploadBufferPerConnection int `alloy:"max_upload_buffer_per_connection,attr,optional"`
	// Bytes that a request may send ahead, up to 4194304; 0 is Go's default.
	MaxUploadBufferPerStream int `alloy:"max_upload_buffer_per_stream,attr,optional"`
}

// SetToDefault sets Alloy's defaults.
func (h *HTTP2) SetToDefault() {
	*h = HTTP2{
		MaxConcurrentStreams: 100, MaxDecoderHeaderTableSize: 4096, MaxEncoderHeaderTableSize: 4096,
		PingTimeout: 15 * time.Second,
	}
}

// GRPC are the settings of Alloy's gRPC server.
type GRPC struct {
	// Refused, like the block.
	ListenAddress string `alloy:"listen_address,attr,optional"`
	// Refused, like the block.
	ListenPort int `alloy:"listen_port,attr,optional"`
	// Refused, like the block.
	ConnLimit int `alloy:"conn_limit,attr,optional"`
	// Refused, like the block.
	MaxConnectionAge time.Duration `alloy:"max_connection_age,attr,optional"`
	// Refused, like the block.
	MaxConnectionAgeGrace time.Duration `alloy:"max_connection_age_grace,attr,optional"`
	// Refused, like the block.
	MaxConnectionIdle time.Duration `alloy:"max_connection_idle,attr,optional"`
	// Refused, like the block.
	MaxRecvMsgSize int `alloy:"server_max_recv_msg_size,attr,optional"`
	// Refused, like the block.
	MaxSendMsgSize int `alloy:"server_max_send_msg_size,attr,optional"`
	// Refused, like the block.
	MaxConcurrentStreams int `alloy:"server_max_concurrent_streams,attr,optional"`
	// Refused, like the block.
	TLS *TLS `alloy:"tls,block,optional"`
}

// SetToDefault sets Alloy's defaults.
func (a *Arguments) SetToDefault() {
	*a = Arguments{GracefulShutdownTimeout: 30 * time.Second}
	a.HTTP.SetToDefault()
}

// Validate returns the errors in the arguments except those in their blocks,
// which the config language validates.
func (a *Arguments) Validate() error {
	return notNegative("graceful_shutdown_timeout", a.GracefulShutdownTimeout)
}

func notNegative(name string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%s is %s, must not be negative", name, d)
	}
	return nil
}

// Validate refuses the block.
func (g *GRPC) Validate() error {
	return errors.New("grpc is not supported: requests are received over HTTP only; remove the block")
}

// Validate returns all errors in the block, joined.
func (h *HTTP) Validate() error {
	errs := []error{
		notNegative("server_read_timeout", h.ReadTimeout),
		notNegative("server_write_timeout", h.WriteTimeout),
		notNegative("server_idle_timeout", h.IdleTimeout),
	}
	if h.ListenPort < 0 || h.ListenPort > 65535 {
		errs = append(errs, fmt.Errorf("listen_port is %d, must be 0 to 65535", h.ListenPort))
	}
	if h.ConnLimit < 0 {
		errs = append(errs, fmt.Errorf("conn_limit is %d, must not be negative", h.ConnLimit))
	}
	return errors.Join(errs...)
}

// Validate returns all errors in the block, joined.
func (h *HTTP2) Validate() error {
	errs := []error{
		notNegative("read_idle_timeout", h.ReadIdleTimeout),
		notNegative("ping_timeout", h.PingTimeout),
		notNegative("write_byte_timeout", h.WriteByteTimeout),
	}
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if h.MaxHandlers != 0 {
		add("max_handlers is not supported: use max_concurrent_streams and conn_limit")
	}
	if h.IdleTimeout != 0 {
		add("idle_timeout is not supported: server_idle_timeout holds for HTTP/2 too")
	}
	within := func(name string, v, from, to int) {
		if v != 0 && (v < from || v > to) {
			add("%s is %d, must be %d to %d, or 0 for the default", name, v, from, to)
		}
	}
	within("max_concurrent_streams", h.MaxConcurrentStreams, 1, 1<<31-1)
	within("max_decoder_header_table_size", h.MaxDecoderHeaderTableSize, 1, 4<<20)
	within("max_encoder_header_table_size", h.MaxEncoderHeaderTableSize, 1, 4<<20)
	within("max_read_frame_size", h.MaxReadFrameSize, 16<<10, 1<<24-1)
	within("max_upload_buffer_per_connection", h.MaxUploadBufferPerConnection, 64<<10-1, 4<<20)
	within("max_upload_buffer_per_stream", h.MaxUploadBufferPerStream, 1, 4<<20)
	return errors.Join(errs...)
}

// Address returns the address to listen on, as host and port.
func (a *Arguments) Address() string {
	return net.JoinHostPort(a.HTTP.ListenAddress, strconv.Itoa(a.HTTP.ListenPort))
}

// Files returns the absolute paths of the files that the server reads.
func (a *Arguments) Files() []string { return cmp.Or(a.HTTP.TLS, &TLS{}).files() }
