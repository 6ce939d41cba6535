package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// server is where something is served: with TLS if there is a certificate.
type server struct {
	address   string
	handler   http.Handler
	cert, key string
}

// serve serves until it is told to end, or one of the servers fails, and returns when the
// requests that were under way have been answered.
func serve(told context.Context, servers ...server) error {
	ctx, cancel := context.WithCancelCause(told)
	defer cancel(nil)
	var running []*http.Server
	for _, s := range servers {
		listener, err := net.Listen("tcp", s.address)
		if err != nil {
			cancel(err)
			break
		}
		one := &http.Server{Handler: s.handler, ReadHeaderTimeout: 10 * time.Second}
		running = append(running, one)
		if s.cert == "" {
			fmt.Printf("listening at http://%s\n", listener.Addr())
			go func() { cancel(one.Serve(listener)) }()
		} else {
			fmt.Printf("listening at https://%s\n", listener.Addr())
			go func() { cancel(one.ServeTLS(listener, s.cert, s.key)) }()
		}
	}
	<-ctx.Done()
	var errs []error
	if told.Err() == nil { // one has failed
		errs = append(errs, context.Cause(ctx))
	}
	grace, done := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer done()
	for _, s := range running {
		errs = append(errs, s.Shutdown(grace))
	}
	return errors.Join(errs...)
}
