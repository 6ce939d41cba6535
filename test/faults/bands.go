package faults

import (
	"fmt"
	"image/color"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/kube-safestore/kube-safestore/test/faults/internal/system"
)

// bands is the lower half of a picture.
func (r Result) bands() (*plot.Plot, error) {
	p := plot.New()
	p.X.Label.Text = "seconds since the fault began; shaded: the fault; green: right, red: wrong and served as good, grey: said to be not ready"
	rows := float64(len(r.Verdicts))
	fault, err := rectangle(r.seconds(r.Begun), r.seconds(r.Over), -0.5, rows-0.5, shade)
	if err != nil {
		return nil, err
	}
	p.Add(fault)
	labels := plotter.XYLabels{}
	var ticks []plot.Tick
	for i, v := range r.Verdicts {
		y := rows - 1 - float64(i)
		ticks = append(ticks, plot.Tick{Value: y, Label: string(v.System)})
		for _, b := range r.band(v.System) {
			area, err := rectangle(b.from, b.to, y-0.25, y+0.1, b.colour)
			if err != nil {
				return nil, err
			}
			p.Add(area)
		}
		last := uint64(0)
		for _, s := range r.Samples[v.System] {
			if s.Generation != last {
				last = s.Generation
				labels.XYs = append(labels.XYs, plotter.XY{X: r.seconds(s.Time()), Y: y + 0.16})
				labels.Labels = append(labels.Labels, generation(s))
			}
		}
	}
	if len(labels.XYs) > 0 {
		drawn, err := plotter.NewLabels(labels)
		if err != nil {
			return nil, err
		}
		for i := range drawn.TextStyle {
			drawn.TextStyle[i].Font.Size = vg.Points(8)
		}
		p.Add(drawn)
	}
	p.Y.Min, p.Y.Max = -0.5, rows-0.5
	p.X.Tick.Marker = wholeTicks{}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	return p, nil
}

// band is a time in which answers were of one kind.
type band struct {
	from, to float64
	colour   color.RGBA
}

// band returns what the answers of a cache were. Between two reads that are far
// apart nothing is known: the process was stopped, or is no more.
func (r Result) band(kind system.Kind) []band {
	const far = 1.5 // seconds
	var all []band
	j := newJudge(r.Truth, r.Bound)
	for _, s := range r.Samples[kind] {
		colour := right
		if _, why := j.judge(s); why != "" {
			colour = wrong
		} else if !s.Good {
			colour = unsaid
		}
		at := r.seconds(s.Time())
		if n := len(all); n > 0 && at-all[n-1].to < far {
			all[n-1].to = at
			if all[n-1].colour == colour {
				continue
			}
		}
		all = append(all, band{at, at, colour})
	}
	return all
}

// generation is what is written where one begins.
func generation(s system.Sample) string {
	if s.Revoked == "" {
		return fmt.Sprint(s.Generation)
	}
	return fmt.Sprintf("%d, after %s", s.Generation, s.Revoked)
}

// wholeTicks are plot's own, without decimals that are zero.
type wholeTicks struct{}

// Ticks implements plot.Ticker.
func (wholeTicks) Ticks(least, most float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(least, most)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = strconv.FormatFloat(ticks[i].Value, 'g', -1, 64)
		}
	}
	return ticks
}
