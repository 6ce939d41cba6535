package faults

import (
	"image/color"
	"io"
	"slices"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/kube-safestore/kube-safestore/test/faults/internal/system"
	"github.com/kube-safestore/kube-safestore/test/faults/internal/truth"
)

var (
	shade  = color.RGBA{R: 238, G: 238, B: 230, A: 255} // the fault
	right  = color.RGBA{R: 60, G: 160, B: 90, A: 255}
	wrong  = color.RGBA{R: 210, G: 40, B: 40, A: 255}
	unsaid = color.RGBA{R: 175, G: 175, B: 175, A: 255} // no answer served as good
)

const margin = 12 // points

// lines are those of the systems: one that lies over another does not hide it.
var lines = map[system.Kind]struct {
	colour color.RGBA
	width  vg.Length
}{
	system.SafeStore: {color.RGBA{R: 20, G: 110, B: 60, A: 255}, 1.5},
	system.Informer:  {color.RGBA{R: 30, G: 90, B: 200, A: 255}, 2},
	system.Runtime:   {color.RGBA{R: 240, G: 160, B: 40, A: 255}, 4},
}

// truthColour and truthWidth are the truth's line, below all others.
var truthColour = color.RGBA{R: 120, G: 120, B: 120, A: 255}

const truthWidth = 7

// Picture writes an SVG image of what was true and what was answered, over time:
// above, how far the truth and each cache were; below, for each cache, when its
// answers were right, when they were wrong and when there were none, with
// SafeStore's generations.
func (r Result) Picture(w io.Writer) error {
	canvas := vgsvg.New(24*vg.Centimeter, 13*vg.Centimeter)
	if err := r.draw(draw.New(canvas)); err != nil {
		return err
	}
	_, err := canvas.WriteTo(w)
	return err
}

func (r Result) draw(c draw.Canvas) error {
	progress, err := r.progress()
	if err != nil {
		return err
	}
	bands, err := r.bands()
	if err != nil {
		return err
	}
	for _, p := range []*plot.Plot{progress, bands} {
		p.X.Min, p.X.Max = r.seconds(r.Start), r.seconds(r.end())
	}
	c = draw.Crop(c, margin, -margin, margin, -margin)
	canvases := plot.Align([][]*plot.Plot{{progress}, {bands}}, draw.Tiles{Rows: 2, Cols: 1}, c)
	progress.Draw(canvases[0][0])
	bands.Draw(canvases[1][0])
	return nil
}

func (r Result) seconds(t time.Time) float64 { return t.Sub(r.Begun).Seconds() }

// end is when the last read was made.
func (r Result) end() time.Time {
	end := r.Over
	for _, samples := range r.Samples {
		if n := len(samples); n > 0 && samples[n-1].Time().After(end) {
			end = samples[n-1].Time()
		}
	}
	return end
}

// rectangle returns a filled area.
func rectangle(x0, x1, y0, y1 float64, c color.Color) (*plotter.Polygon, error) {
	p, err := plotter.NewPolygon(plotter.XYs{{X: x0, Y: y0}, {X: x1, Y: y0}, {X: x1, Y: y1}, {X: x0, Y: y1}})
	if err != nil {
		return nil, err
	}
	p.Color, p.LineStyle.Width = c, 0
	return p, nil
}

// progress is the upper half.
func (r Result) progress() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = r.Fault.Name
	p.Y.Label.Text = "number of the newest change"
	p.Title.Padding = 6
	p.X.Tick.Marker, p.Y.Tick.Marker = wholeTicks{}, wholeTicks{}
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, 4
	var truePoints plotter.XYs
	most := 1.0
	for i, m := range r.Truth {
		if n, ok := number(m.State); ok {
			if i > 0 && len(truePoints) > 0 {
				truePoints = append(truePoints, plotter.XY{X: r.seconds(m.At), Y: truePoints[len(truePoints)-1].Y})
			}
			truePoints = append(truePoints, plotter.XY{X: r.seconds(m.At), Y: n})
			most = max(most, n)
		}
	}
	fault, err := rectangle(r.seconds(r.Begun), r.seconds(r.Over), 0, most*1.05, shade)
	if err != nil {
		return nil, err
	}
	p.Add(fault)
	line := func(name string, points plotter.XYs, c color.Color, width vg.Length) error {
		if len(points) == 0 {
			return nil
		}
		l, err := plotter.NewLine(points)
		if err != nil {
			return err
		}
		l.Color, l.Width = c, width
		p.Add(l)
		if name != "" {
			p.Legend.Add(name, l)
		}
		return nil
	}
	if err := line("truth", truePoints, truthColour, truthWidth); err != nil {
		return nil, err
	}
	for _, v := range slices.Backward(r.Verdicts) {
		name := string(v.System)
		for _, spell := range r.spells(v.System) {
			if err := line(name, spell, lines[v.System].colour, lines[v.System].width); err != nil {
				return nil, err
			}
			name = "" // once in the legend
		}
	}
	p.Y.Min, p.Y.Max = 0, most*1.05
	return p, nil
}

// number is how far a state is.
func number(s truth.State) (float64, bool) {
	counter, err := strconv.ParseFloat(s.Counter, 64)
	blinker, blinkerErr := strconv.ParseFloat(s.Blinker, 64)
	return max(counter, blinker), err == nil || blinkerErr == nil
}

// spells returns what a cache answered, in pieces between which it did not.
func (r Result) spells(kind system.Kind) []plotter.XYs {
	var spells []plotter.XYs
	var now plotter.XYs
	for _, s := range r.Samples[kind] {
		n, ok := number(s.State)
		if s.Good && ok {
			now = append(now, plotter.XY{X: r.seconds(s.Time()), Y: n})
			continue
		}
		if len(now) > 0 {
			spells, now = append(spells, now), nil
		}
	}
	if len(now) > 0 {
		spells = append(spells, now)
	}
	return spells
}
