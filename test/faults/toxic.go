package faults

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/kube-safestore/kube-safestore/test/cluster"
)

// toxic is a TCP proxy with which connections can be poisoned.
type toxic struct{ *toxiproxy.Proxy }

// ThroughTCP lets the caches reach a server through a TCP proxy.
func (s *Stage) ThroughTCP(server *cluster.APIServer) (*toxic, error) {
	to, err := address(server)
	if err != nil {
		return nil, err
	}
	p, err := startToxic(to)
	if err != nil {
		return nil, err
	}
	s.Defer(func() error { p.Stop(); return nil })
	s.Config = server.Config()
	s.Config.Host = "https://" + p.Listen
	return p, nil
}

func startToxic(to string) (*toxic, error) {
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxics log by themselves
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := toxiproxy.NewProxy(server, "faults", "127.0.0.1:0", to)
	return &toxic{p}, p.Start()
}

// attributes are those of a toxic, by their names in toxiproxy's documentation.
type attributes map[string]any

// add poisons one direction, "upstream" or "downstream", of all connections, old
// and new, with a toxic of that type.
func (t *toxic) add(kind, direction string, a attributes) error {
	data, err := json.Marshal(map[string]any{"name": kind + direction, "type": kind, "stream": direction, "attributes": a})
	if err != nil {
		return err
	}
	_, err = t.Toxics.AddToxicJson(bytes.NewReader(data))
	return err
}

// remove takes one toxic out.
func (t *toxic) remove(ctx context.Context, kind, direction string) error {
	return t.Toxics.RemoveToxic(ctx, kind+direction)
}

// clean takes all poison out.
func (t *toxic) clean(ctx context.Context) { t.Toxics.ResetToxics(ctx) }

// restart breaks all connections. New ones are carried.
func (t *toxic) restart() error {
	t.Stop()
	return t.Start()
}
