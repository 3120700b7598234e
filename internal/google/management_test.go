package google_test

import (
	"strings"
	"testing"

	"github.com/livetree/livetree/internal/hosts"
)

func TestManagement(t *testing.T) {
	s, id := accounted(t, hosts.Hosts{})
	bearer := "\nAuthorization: Bearer " + s.access(id, "default")
	bySecret := "\nAuthorization: Bearer " + secret
	described := `{"name":"projects/p/locations/us-central1/instances/default","project":"projects/p","databaseUrl":"` + s.URL +
		`","type":"DEFAULT_DATABASE","state":"ACTIVE"}`
	unparsed := "401 " + errorBody("Could not parse auth token.")
	needed := "401 " + errorBody("this needs the credential of the database's operator: its secret, or an access token of a service account")
	list := strings.ReplaceAll(described, "projects/p", "projects/default")
	s.expect(
		`GET /v1beta/projects/p/locations/-/instances/default`+bearer, "200 "+described,
		`GET /v1beta/projects/p/locations/-/instances/default`+bySecret, "200 "+described,
		`GET /v1beta/projects/p/locations/-/instances/default?access_token=`+secret, "200 "+described,
		`GET /v1beta/projects/p/locations/-/instances/default`, needed,
		`GET /v1beta/projects/p/locations/-/instances/default`+"\nAuthorization: Bearer owner", unparsed,
		`GET /v1beta/projects/p/locations/-/instances/closed`+bearer, unparsed,
		`GET /v1beta/projects/p/locations/-/instances/nobody`+bearer, unparsed,
		`GET /v1beta/projects/p/locations/-/instances/nobody`, needed,
		`GET /v1beta/projects/default/locations/-/instances?pageSize=100`+bearer, `200 {"instances":[`+list+`]}`,
		`GET /v1beta/projects/p/locations/-/instances?pageSize=100`+bearer, unparsed,
		`POST /v1/projects/default:testIamPermissions {"permissions":["a","b"]}`+bearer, `200 {"permissions":["a","b"]}`,
		`POST /v1/projects/default:testIamPermissions {"permissions":["a","b"]}`, needed,
		`POST /v1/projects/default:testIamPermissions [`+bearer, `400 `+errorBody(`the body must be an object with a list \"permissions\"`),
		`GET /v1/projects/default:testIamPermissions`+bearer, `405 `+errorBody("this knows POST only"),
		`GET /v1beta1/projects/default`+bearer, `200 {"displayName":"default","name":"projects/default","projectId":"default","projectNumber":"1","resources":{"realtimeDatabaseInstance":"default"},"state":"ACTIVE"}`,
		`PUT /v1beta1/projects/default.json 1`+bearer, `200 1`, // this is data
		`GET /v1beta1/projects/default/x`+bearer, `404 `+errorBody("append .json to your request URI to use the REST API"),
	)
}

func TestManagementNamesDatabasesByHost(t *testing.T) {
	s := serve(t, hosts.Hosts{Domain: "db.example.org"}, true)
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	owner := "\nAuthorization: Bearer owner"
	got, _ := s.do(`GET /v1beta/projects/demo/locations/-/instances`, "Authorization: Bearer owner")
	for _, name := range []string{"closed", "default"} {
		if !strings.Contains(got, `/instances/`+name+`"`) {
			t.Errorf("the owner sees %s, want all databases", got)
		}
	}
	s.expect(
		`GET /v1beta/projects/demo/locations/-/instances/closed`+owner,
		`200 {"name":"projects/demo/locations/us-central1/instances/closed","project":"projects/demo","databaseUrl":"https://closed.db.example.org`+port+`","type":"USER_DATABASE","state":"ACTIVE"}`,
		`GET /v1beta1/projects/demo`+owner, `200 {"displayName":"demo","name":"projects/demo","projectId":"demo","projectNumber":"1","resources":{"realtimeDatabaseInstance":"default"},"state":"ACTIVE"}`,
	)
	nameless := serve(t, hosts.Hosts{}, true)
	got, _ = nameless.do(`GET /v1beta/projects/demo/locations/-/instances/closed`, "Authorization: Bearer owner")
	if !strings.HasPrefix(got, "400 ") || !strings.Contains(got, "--domain") {
		t.Errorf("a database that firebase-tools would miss is answered %s", got)
	}
}
