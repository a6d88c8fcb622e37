package control

import (
	_ "embed"
	"net/http"

	"example.com/banking/pkg/fault"
	"example.com/banking/pkg/retry"
	"example.com/banking/pkg/service"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
)

// OpenAPI describes the routes, for service.MergeOpenAPI.
//
//go:embed openapi.yaml
var OpenAPI []byte

// Register adds the routes to the group of admin calls. When faults are off they answer 404 and say how to turn them on.
func (c *Control) Register(admin *echo.Group) {
	admin.GET("/faults", c.onlyWhenOn(c.list))
	admin.POST("/faults", c.onlyWhenOn(c.arm))
	admin.DELETE("/faults", c.onlyWhenOn(c.disarmAll))
	admin.DELETE("/faults/:id", c.onlyWhenOn(c.disarm))
}

func (c *Control) onlyWhenOn(handler echo.HandlerFunc) echo.HandlerFunc {
	if c.config.On {
		return handler
	}
	return func(echo.Context) error {
		return service.NotFound("Fault points are off. A service that is started with FAULTS=on has them.")
	}
}

// view is a fault in JSON.
type view struct {
	ID        uuid.UUID    `json:"id"`
	Point     fault.Point  `json:"point"`
	Action    fault.Action `json:"action"`
	Class     retry.Class  `json:"class,omitempty"`
	Delay     string       `json:"delay,omitempty"`
	MessageID string       `json:"messageId,omitempty"`
	Remaining *int64       `json:"remaining,omitempty"`
	Fired     int64        `json:"fired"`
}

func viewOf(f fault.Fault) view {
	v := view{ID: f.ID, Point: f.Point, Action: f.Action, Class: f.Class, MessageID: f.MessageID, Remaining: f.Remaining, Fired: f.Fired}
	if f.Delay > 0 {
		v.Delay = f.Delay.String()
	}
	return v
}

// arm stores a fault. By the time of the answer it is armed on this replica, or will be with the next poll: once it is stored there is no
// taking it back, and an error would make the client arm it twice.
func (c *Control) arm(e echo.Context) error {
	var asked request
	if err := service.DecodeJSON(e, &asked); err != nil {
		return err
	}
	f, err := asked.fault()
	if err != nil {
		return err
	}
	ctx := e.Request().Context()
	if err := c.store.insert(ctx, f); err != nil {
		return err
	}
	if err := c.refresh(ctx); err != nil {
		c.config.Logger.WarnContext(ctx, "a new fault is stored, and armed here with the next poll that works", "fault", f.ID, "error", err)
	}
	c.config.Logger.WarnContext(ctx, "fault armed", "fault", f.ID, "point", f.Point, "action", f.Action, "class", f.Class, "delay", f.Delay,
		"message_id", f.MessageID, "count", f.Remaining)
	return e.JSON(http.StatusCreated, viewOf(f))
}

func (c *Control) list(e echo.Context) error {
	ctx := e.Request().Context()
	if err := c.points.NoteFired(ctx); err != nil { // so that what fired here a moment ago is in the answer
		return err
	}
	faults, err := c.store.list(ctx)
	if err != nil {
		return err
	}
	items := make([]view, len(faults))
	for i, f := range faults {
		items[i] = viewOf(f)
	}
	return e.JSON(http.StatusOK, map[string]any{"items": items})
}

func (c *Control) disarmAll(e echo.Context) error {
	ctx := e.Request().Context()
	if err := c.store.clear(ctx); err != nil {
		return err
	}
	return c.disarmed(e)
}

func (c *Control) disarm(e echo.Context) error {
	id, err := service.PathID(e, "id")
	if err != nil {
		return err
	}
	removed, err := c.store.remove(e.Request().Context(), id)
	if err != nil {
		return err
	}
	if !removed {
		return service.NotFound("There is no fault with this id.")
	}
	return c.disarmed(e)
}

// disarmed answers once the fault can no longer fire on this replica; the others follow within a second.
func (c *Control) disarmed(e echo.Context) error {
	ctx := e.Request().Context()
	if err := c.refresh(ctx); err != nil {
		return err
	}
	c.config.Logger.InfoContext(ctx, "faults deleted")
	return e.NoContent(http.StatusNoContent)
}
